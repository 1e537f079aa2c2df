-- The id of a delivery is made for the time of its event, so the deliveries of an event are a span of ids. An event is
-- deleted only when it has no delivery; a foreign key would need an index to see that.
ALTER TABLE deliveries DROP CONSTRAINT deliveries_tenant_id_event_id_fkey;
DROP INDEX deliveries_of_event;
