-- How far the erasure of a contact has come, while one is under way (svc_core::personal::erase).
ALTER TABLE contacts ADD COLUMN erasure TEXT;
