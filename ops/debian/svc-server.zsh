#compdef svc-server

autoload -U is-at-least

_svc-server() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'--config=[A file of settings in TOML with the names of the flags, such as listen = "\:8080". Flags and environment variables win over it]:FILE:_files' \
'--listen=[The address and port to listen on\: 127.0.0.1\:8080, localhost\:8080, or \:8080 for all addresses of the machine. A name is resolved at start, and all its addresses are used. Port 0 selects a free port]:ADDRESS:_default' \
'--database-url=[The database\: sqlite\://PATH, a file that is created if it does not exist, or postgres\://USER\:PASSWORD@HOST\:PORT/DATABASE, which several nodes can share. The default is sqlite\://svc.db, and with --demo a temporary file]:URL:_default' \
'--database-read-connections=[The number of PostgreSQL connections for reading. Each serves many requests at the same time. SQLite ignores it]:N:_default' \
'--database-write-connections=[The number of PostgreSQL connections for writing, and so of transactions that write at the same time. The connections for reading and writing and two more, times the number of nodes, must stay below max_connections of the database server. SQLite ignores it]:N:_default' \
'--database-planner-settings=[Whether PostgreSQL'\''s planner is told to read every list from its index, whatever its statistics say. By default it is, except on Citus]:DATABASE_PLANNER_SETTINGS:(on off)' \
'--ops-listen=[The address and port of the operations listener, which serves /metrics, /healthz and /readyz. The default is 127.0.0.1\:9464, if that port is free]:ADDRESS:_default' \
'--platform-listen=[Address of the platform API, with which programs of the operator work on all accounts by platform keys, such as 127.0.0.1\:8081. It is not served unless this is set. Let only these programs reach it]:ADDRESS:_default' \
'--platform-webhook=[The URL that operational events are sent to as webhooks\: endpoint.paused, delivery.exhausted, key.expiring, account.approved, app.authorized and app.revoked. Without it they are not recorded. Every node needs the same]:URL:_default' \
'--rate-limit=[The number of requests per minute that are allowed for each API key, and for each address without a valid key. \`svc account set\` sets another limit for the keys of one account]:N:_default' \
'*--write-rate-limit=[The number of writes per minute that are allowed for each API key, per method and route of a resource, such as quotes=20. Can be repeated or separated by commas. \`svc account set\` sets other limits for the keys of one account]:RESOURCE=N:_default' \
'--max-webhooks=[The number of webhook subscriptions that each account can have, from 1 to 1000. \`svc account set\` sets another limit for one account]:N:_default' \
'--event-kinds=[A JSON file with your own event kinds\: an object of JSON Schemas by the names of their kinds, such as order.shipped. The same on every node]:FILE:_files' \
'--webhook-timeout=[The timeout of one webhook delivery attempt, from resolving the host name to the end of the response, such as 10s. At most 1h]:DURATION:_default' \
'--webhook-max-timeout=[The longest timeout that a webhook subscription can have instead, from 1s to 30s]:DURATION:_default' \
'*--webhook-retry=[The delays before the retries of a webhook delivery, separated by commas. Up to 10 % is added to each at random]:DURATIONS:_default' \
'--webhook-concurrency=[The highest number of webhook delivery attempts at the same time. One account can use half of them]:N:_default' \
'--egress-proxy=[An HTTP proxy that all webhook deliveries go through (CONNECT), such as http\://USER\:PASSWORD@HOST\:PORT, so that receivers can allow static addresses. Addresses are still resolved and checked here. Set it in the environment, as other users can see flags]:URL:_default' \
'--egress-proxy-resolves=[Whether the proxy of --egress-proxy resolves host names. With on, it has to keep deliveries from private addresses\: svc then refuses only those that are written in URLs]:EGRESS_PROXY_RESOLVES:(on off)' \
'--idempotency-ttl=[How long the response to a request with an Idempotency-Key is stored. A retry with the same key gets it again]:DURATION:_default' \
'--stream=[The broker that all events of all accounts are sent to as well\: nats\://HOST\:PORT/PREFIX, amqp\://USER\:PASSWORD@HOST\:PORT/VHOST/EXCHANGE or kafka\://HOST\:PORT/TOPIC, and with TLS tls\://, amqps\:// and kafka+ssl\://. The program must be built with the feature of the broker]:URL:_default' \
'--retention=[How long events are stored, with their deliveries and the logs of attempts. That includes deliveries that are held for a paused subscription. Pending deliveries are kept, and so are their events]:DURATION:_default' \
'--request-log=[Whether requests to the API are logged for their account, without bodies\: the newest 1,000 of the last 24 hours]:REQUEST_LOG:(on off)' \
'--docs=[Whether the API reference is served at /docs]:DOCS:(on off)' \
'--extensions=[Whether the API has operations beyond its contract, with which programs of an account fetch the events and deliveries that they missed, and send them again]:EXTENSIONS:(on off)' \
'--overdue=[Whether invoices that were not paid in time become overdue by themselves, once a day after midnight in the time zone of their account. With off, run \`svc invoice overdue\`]:OVERDUE:(on off)' \
'--dashboard=[Whether the dashboard is served at /dashboard, where people of an account and operators sign in with a link of \`svc dashboard link\`, and members at the provider of --oidc-issuer]:DASHBOARD:(on off)' \
'--dashboard-frame-ancestor=[The origin of pages that may show the dashboard in a frame, such as \`https\://app.example.com\`. It must belong to the same site as this server, or browsers keep the cookie of the session from the frame]:ORIGIN:_default' \
'--public-url=[The URL at which the world reaches this server, such as \`https\://api.example.com\`. It names the server to apps, so it is never taken from a request. For trying, \`http\://127.0.0.1\:8080\` is fine]:URL:_default' \
'--oauth=[Whether owners can let third-party apps work on their accounts (OAuth 2.0). Requires --public-url, and the dashboard, in which owners consent]:OAUTH:(on off)' \
'--oauth-clients=[The apps that owners can connect. Requires --oauth on]:WHICH:((registered\:"Those that were registered with the operator"
metadata\:"Registered apps and those that publish their description at a URL, their client id, as assistants do. The page of consent says that nobody has verified them"))' \
'--mcp=[Whether assistants find tools at /mcp, and at /mcp/readonly those that change nothing (Model Context Protocol). They need an API key, or with --oauth on the consent of an owner. Requests must be for the host of --public-url, or for localhost]:MCP:(on off)' \
'--oidc-issuer=[The issuer of an identity provider (OpenID Connect), such as \`https\://id.example.com\`, with which members sign in to the dashboard. Requires --oidc-client-id and --oidc-client-secret. Register the address of this server followed by /dashboard/oidc/callback there]:URL:_default' \
'--oidc-client-id=[The client that the identity provider knows this server as]:ID:_default' \
'--oidc-client-secret=[The secret of this client. Set it in the environment, as other users can see flags]:SECRET:_default' \
'--oidc-ca=[PEM file with the identity provider'\''s certificate authorities, in place of the public ones. Read at start]:FILE:_files' \
'--shutdown-grace=[How long requests and webhook delivery attempts in progress may take to finish after SIGTERM or SIGINT]:DURATION:_default' \
'--log-format=[The format of the log on stderr]:LOG_FORMAT:((text\:"One line of text per event, for people"
json\:"One JSON object per line, for log collectors"))' \
'--tls-cert=[A file with the TLS certificate chain in PEM, to serve https. Requires --tls-key. Both files are reloaded on SIGHUP]:FILE:_files' \
'--tls-key=[A file with the private key of the certificate in PEM. Requires --tls-cert]:FILE:_files' \
'*--trusted-proxy=[A proxy whose X-Forwarded-For header is trusted\: an address, or a network such as 10.0.0.0/8. Can be repeated or separated by commas. Without any, the header is ignored]:NETWORK:_default' \
'*--cors-origin=[An origin that browsers may call the API from (CORS), such as \`https\://app.example.com\`. Can be repeated or separated by commas]:ORIGIN:_default' \
'--max-connections=[The highest number of open connections. When they are used up, a new one closes the oldest idle or unfinished connection of the address with the most; if there is none, it waits]:N:_default' \
'--keep-alive=[How long a connection stays open without a request, from 1s to 1h. It must be longer than a load balancer or proxy in front keeps idle connections\: 60s by default at AWS, 600s at Google Cloud]:DURATION:_default' \
'--demo[Start with a demo account, an API key and sample data, and allow http\:// and private addresses in webhook URLs]' \
'--allow-private-webhooks[Allow http\:// and private addresses in webhook URLs. For development only\: it lets the accounts of the API send requests into the network of the server]' \
'--no-rate-limit[Disable all rate limits]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
":: :_svc-server_commands" \
"*::: :->svc-server" \
&& ret=0
    case $state in
    (svc-server)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:svc-server-command-$line[1]:"
        case $line[1] in
            (healthcheck)
_arguments "${_arguments_options[@]}" : \
'--config=[A file of settings in TOML with the names of the flags, such as listen = "\:8080". Flags and environment variables win over it]:FILE:_files' \
'--ops-listen=[The address and port of the operations listener, which serves /metrics, /healthz and /readyz. The default is 127.0.0.1\:9464, if that port is free]:ADDRESS:_default' \
'--ready[Check /readyz, which needs the database, in place of /healthz, which needs the process alone]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
        esac
    ;;
esac
}

(( $+functions[_svc-server_commands] )) ||
_svc-server_commands() {
    local commands; commands=(
'healthcheck:Check whether the server on this machine is healthy, and exit with 0 or 1' \
    )
    _describe -t commands 'svc-server commands' commands "$@"
}
(( $+functions[_svc-server__subcmd__healthcheck_commands] )) ||
_svc-server__subcmd__healthcheck_commands() {
    local commands; commands=()
    _describe -t commands 'svc-server healthcheck commands' commands "$@"
}

if [ "$funcstack[1]" = "_svc-server" ]; then
    _svc-server "$@"
else
    compdef _svc-server svc-server
fi
