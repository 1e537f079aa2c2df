-- What waits for an operator or a replay is counted by metrics. Deliveries that succeed never enter it.
CREATE INDEX deliveries_stopped ON deliveries (state, created_at) WHERE state = 'failed' OR state = 'held';
