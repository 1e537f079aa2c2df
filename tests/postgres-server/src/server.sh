# Makes and runs a PostgreSQL server: server.sh PROGRAMS PORT FSYNC PARENT. Obeys commands on its standard input and answers each
# with a line: "ok …" or "failed …". When the input ends, the server is stopped and its folder removed.
programs=$1
port=$2
fsync=$3

# The server and its folder go when the test process does, not before. It may be gone when it is to be answered.
trap '' INT TERM HUP PIPE
umask 077
# The path of a Unix socket must be short, so the folder is not made in a deep one.
folder=$(mktemp -d "$4/svc-postgres.XXXXXX") || exit 1
log=$folder/log

# Programs must not read the commands, nor write among the answers.
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

# Certificates for `localhost`, where there is a program to make them.
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

make() {
    quietly "$programs/initdb" -D "$folder/data" -U svc --auth=trust --encoding=UTF8 --no-locale --no-sync || return 1
    cat >> "$folder/data/postgresql.conf" << END
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = '$folder'
max_connections = 200
fsync = $fsync
END
    if command -v openssl > /dev/null; then certify; fi
    cd /
    start
}

# Gives a copy the content of its original again: a tenth of the work of a new copy. Whoever is still connected is not
# any more then, and what refers to what is not looked at.
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

answer() {
    if [ "$1" -eq 0 ]; then echo "ok $folder"; else echo "failed $(tail -n 3 "$log" "$folder/server.log" 2>&1 | tr '\n' ' ')"; fi
}

make
answer $?
while read -r command argument template; do
    case $command in
        database) quietly "$programs/createdb" -h "$folder" -p "$port" -U svc "$argument" ;;
        copy) quietly "$programs/createdb" -h "$folder" -p "$port" -U svc -T "$template" "$argument" ;;
        restore) restore "$argument" "$template" ;;
        start) start ;;
        stop) stop "$argument" ;;
        *) false ;;
    esac
    answer $?
done
stop immediate
rm -rf "$folder"
