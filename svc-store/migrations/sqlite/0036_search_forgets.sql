-- What is deleted from the index of searches is gone from it at once, and not only hidden until it is merged. What was hidden
-- before goes now.
INSERT INTO search_index (search_index, rank) VALUES ('secure-delete', 1);
INSERT INTO search_index (search_index) VALUES ('optimize');
