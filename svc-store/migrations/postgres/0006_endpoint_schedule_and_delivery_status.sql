-- The names of the documentation: endpoints have a schedule, and deliveries have a status.
ALTER TABLE turns RENAME TO endpoint_schedule;
ALTER TABLE endpoint_schedule RENAME COLUMN at TO due_at;
ALTER INDEX turns_pkey RENAME TO endpoint_schedule_pkey;
ALTER INDEX turns_by_time RENAME TO endpoint_schedule_by_due_at;

-- The expressions of the constraints and of the partial indexes follow the column.
ALTER TABLE deliveries RENAME COLUMN state TO status;
ALTER TABLE deliveries RENAME CONSTRAINT deliveries_state_check TO deliveries_status_check;
