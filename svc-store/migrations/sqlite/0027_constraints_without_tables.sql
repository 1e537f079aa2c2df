-- For an `IN` of more than two values, SQLite makes a table each time that a statement checks it, which was a third of the
-- cost of storing the outcome of a delivery. Comparisons need none. The rows stay as they are, so only the text of the
-- tables is changed, as the documentation of ALTER TABLE describes for constraints.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql,
    'status IN (''pending'', ''succeeded'', ''failed'', ''held'')',
    'status = ''pending'' OR status = ''succeeded'' OR status = ''failed'' OR status = ''held''')
    WHERE type = 'table' AND name = 'deliveries';
UPDATE sqlite_schema SET sql = replace(sql,
    'status IN (''draft'', ''sent'', ''viewed'', ''partial'', ''paid'', ''overdue'', ''cancelled'')',
    'status = ''draft'' OR status = ''sent'' OR status = ''viewed'' OR status = ''partial'''
    || ' OR status = ''paid'' OR status = ''overdue'' OR status = ''cancelled''')
    WHERE type = 'table' AND name = 'invoices';
UPDATE sqlite_schema SET sql = replace(sql,
    'status IN (''draft'', ''sent'', ''viewed'', ''accepted'', ''declined'', ''expired'', ''converted'')',
    'status = ''draft'' OR status = ''sent'' OR status = ''viewed'' OR status = ''accepted'''
    || ' OR status = ''declined'' OR status = ''expired'' OR status = ''converted''')
    WHERE type = 'table' AND name = 'quotes';
UPDATE sqlite_schema SET sql = replace(sql,
    'status IN (''cancelled'', ''confirmed'', ''completed'', ''no_show'')',
    'status = ''cancelled'' OR status = ''confirmed'' OR status = ''completed'' OR status = ''no_show''')
    WHERE type = 'table' AND name = 'bookings';
UPDATE sqlite_schema SET sql = replace(sql,
    'status IN (''quoted'', ''scheduled'', ''in_progress'', ''on_hold'', ''completed'', ''invoiced'', ''cancelled'')',
    'status = ''quoted'' OR status = ''scheduled'' OR status = ''in_progress'' OR status = ''on_hold'''
    || ' OR status = ''completed'' OR status = ''invoiced'' OR status = ''cancelled''')
    WHERE type = 'table' AND name = 'jobs';
UPDATE sqlite_schema SET sql = replace(sql,
    'developer_access IN (''pending'', ''approved'', ''suspended'')',
    'developer_access = ''pending'' OR developer_access = ''approved'' OR developer_access = ''suspended''')
    WHERE type = 'table' AND name = 'tenants';
UPDATE sqlite_schema SET sql = replace(sql,
    'role IN (''viewer'', ''developer'', ''owner'')',
    'role = ''viewer'' OR role = ''developer'' OR role = ''owner''')
    WHERE type = 'table' AND name IN ('members', 'dashboard_links', 'dashboard_sessions');
PRAGMA writable_schema = RESET;
