-- The names of the documentation: endpoints have a schedule, and deliveries have a status.
ALTER TABLE turns RENAME TO endpoint_schedule;
ALTER TABLE endpoint_schedule RENAME COLUMN at TO due_at;
DROP INDEX turns_by_time;
CREATE INDEX endpoint_schedule_by_due_at ON endpoint_schedule (due_at);

-- The constraints and the partial indexes of the table are renamed with the column.
ALTER TABLE deliveries RENAME COLUMN state TO status;
