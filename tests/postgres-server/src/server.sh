# Makes and runs a PostgreSQL server: server.sh PROGRAMS PORT FSYNC. Obeys commands on its standard input and answers each
# with a line: "ok …" or "failed …". When the input ends, the server is stopped and its folder removed.
programs=$1
port=$2
fsync=$3

# The server and its folder go when the test process does, not before. It may be gone when it is to be answered.
trap '' INT TERM HUP PIPE
umask 077
# The path of a Unix socket must be short, so the folder is not made in a deep one.
folder=$(mktemp -d /tmp/svc-postgres.XXXXXX) || exit 1
log=$folder/log

# Programs must not read the commands, nor write among the answers.
quietly() {
    "$@" < /dev/null >> "$log" 2>&1
}

start() {
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

answer() {
    if [ "$1" -eq 0 ]; then echo "ok $folder"; else echo "failed $(tail -n 3 "$log" "$folder/server.log" 2>&1 | tr '\n' ' ')"; fi
}

make
answer $?
while read -r command argument template; do
    case $command in
        database) quietly "$programs/createdb" -h "$folder" -p "$port" -U svc "$argument" ;;
        copy) quietly "$programs/createdb" -h "$folder" -p "$port" -U svc -T "$template" "$argument" ;;
        # Nobody waits for it.
        drop) quietly "$programs/dropdb" -h "$folder" -p "$port" -U svc --force --if-exists "$argument" & ;;
        start) start ;;
        stop) stop "$argument" ;;
        *) false ;;
    esac
    answer $?
done
stop immediate
rm -rf "$folder"
