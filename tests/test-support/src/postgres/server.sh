# Creates and runs a PostgreSQL server: server.sh PROGRAMS PORT FSYNC PARENT [PRIMARY], which is a standby of the server on
# the port PRIMARY, if one is given. Runs the commands on its standard input and prints one line for each: "ok …" or
# "failed …". When the input ends, it stops the server and removes its folder.
programs=$1
port=$2
fsync=$3
primary=$5

# The server lives until the test process ends, so signals are ignored. That process may end before it reads a result.
trap '' INT TERM HUP PIPE
umask 077
# The path of a Unix socket must be short, so the folder is not nested deeply.
folder=$(mktemp -d "$4/svc-postgres.XXXXXX") || exit 1
log=$folder/log

# Programs must neither read the commands nor write to the results.
quietly() {
    "$@" < /dev/null >> "$log" 2>&1
}

start() {
    if quietly "$programs/pg_ctl" -D "$folder/data" status; then return; fi
    quietly "$programs/pg_ctl" -D "$folder/data" -l "$folder/server.log" -w -t 60 start
}

stop() {
    quietly "$programs/pg_ctl" -D "$folder/data" -m "$1" -w -t 60 stop
}

# Creates a certificate for `localhost`, if openssl is installed.
certify() {
    cd "$folder/data" || return 1
    key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    quietly openssl req -x509 $key -keyout authority.key -out authority.crt -subj /CN=authority -days 2 || return 1
    quietly openssl req $key -keyout server.key -out server.csr -subj /CN=localhost || return 1
    echo subjectAltName=DNS:localhost > names
    quietly openssl x509 -req -in server.csr -CA authority.crt -CAkey authority.key -CAcreateserial -extfile names \
        -out server.crt -days 2 || return 1
    echo "ssl = on" >> postgresql.conf
}

create() {
    if [ -n "$primary" ]; then
        quietly "$programs/pg_basebackup" -h 127.0.0.1 -p "$primary" -U svc -D "$folder/data" --write-recovery-conf \
            --checkpoint=fast --no-sync || return 1
    else
        quietly "$programs/initdb" -D "$folder/data" -U svc --auth=trust --encoding=UTF8 --no-locale --no-sync || return 1
    fi
    # Several tests may make the thousands of tables of a distributed database at once, with a lock for each.
    cat >> "$folder/data/postgresql.conf" << END
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = '$folder'
max_connections = 200
max_locks_per_transaction = 256
fsync = $fsync
END
    if [ -z "$primary" ] && command -v openssl > /dev/null; then certify; fi
    cd /
    start
}

# Resets a copy to the content of its original, which takes a tenth of the time of a new copy. Open connections are
# terminated, and foreign keys are not checked.
restore() {
    content=$folder/$2.sql
    if [ ! -f "$content" ]; then
        cat > "$content" << 'END'
SET session_replication_role = replica;
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
DO $$
DECLARE
    name text;
BEGIN
    WHILE EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
                  AND backend_type = 'client backend') LOOP
        PERFORM pg_sleep(0.001), pg_stat_clear_snapshot();
    END LOOP;
    FOR name IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'public' LOOP
        EXECUTE 'DELETE FROM ' || name;
    END LOOP;
END $$;
END
        "$programs/pg_dump" -h "$folder" -p "$port" -U svc --data-only "$2" < /dev/null >> "$content" 2>> "$log" || return 1
    fi
    quietly "$programs/psql" -X -q -1 -v ON_ERROR_STOP=1 -h "$folder" -p "$port" -U svc -f "$content" "$1"
}

report() {
    if [ "$1" -eq 0 ]; then echo "ok $folder"; else echo "failed $(tail -n 3 "$log" "$folder/server.log" 2>&1 | tr '\n' ' ')"; fi
}

create
report $?
while read -r command argument template; do
    case $command in
        database) quietly "$programs/createdb" -h "$folder" -p "$port" -U svc "$argument" ;;
        copy) quietly "$programs/createdb" -h "$folder" -p "$port" -U svc -T "$template" "$argument" ;;
        restore) restore "$argument" "$template" ;;
        start) start ;;
        stop) stop "$argument" ;;
        promote) quietly "$programs/pg_ctl" -D "$folder/data" -w -t 60 promote ;;
        *) false ;;
    esac
    report $?
done
stop immediate
rm -rf "$folder"
