# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_svc_server_global_optspecs
    string join \n config= listen= database-url= database-read-connections= database-write-connections= database-planner-settings= ops-listen= platform-listen= platform-webhook= demo allow-private-webhooks no-rate-limit rate-limit= write-rate-limit= max-webhooks= event-kinds= webhook-timeout= webhook-max-timeout= webhook-retry= webhook-concurrency= egress-proxy= egress-proxy-resolves= idempotency-ttl= stream= retention= request-log= docs= extensions= overdue= dashboard= dashboard-frame-ancestor= public-url= oauth= oauth-clients= mcp= oidc-issuer= oidc-client-id= oidc-client-secret= oidc-ca= shutdown-grace= log-format= tls-cert= tls-key= trusted-proxy= cors-origin= max-connections= keep-alive= h/help V/version
end

function __fish_svc_server_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_svc_server_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_svc_server_using_subcommand
    set -l cmd (__fish_svc_server_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c svc-server -n "__fish_svc_server_needs_command" -l config -d 'A file of settings in TOML with the names of the flags, such as listen = ":8080". Flags and environment variables win over it' -r -F
complete -c svc-server -n "__fish_svc_server_needs_command" -l listen -d 'The address and port to listen on: 127.0.0.1:8080, localhost:8080, or :8080 for all addresses of the machine. A name is resolved at start, and all its addresses are used. Port 0 selects a free port' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l database-url -d 'The database: sqlite://PATH, a file that is created if it does not exist, or postgres://USER:PASSWORD@HOST:PORT/DATABASE, which several nodes can share. The default is sqlite://svc.db, and with --demo a temporary file' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l database-read-connections -d 'The number of PostgreSQL connections for reading. Each serves many requests at the same time. SQLite ignores it' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l database-write-connections -d 'The number of PostgreSQL connections for writing, and so of transactions that write at the same time. The connections for reading and writing and two more, times the number of nodes, must stay below max_connections of the database server. SQLite ignores it' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l database-planner-settings -d 'Whether PostgreSQL\'s planner is told to read every list from its index, whatever its statistics say. By default it is, except on Citus' -r -f -a "on\t''
off\t''"
complete -c svc-server -n "__fish_svc_server_needs_command" -l ops-listen -d 'The address and port of the operations listener, which serves /metrics, /healthz and /readyz. The default is 127.0.0.1:9464, if that port is free' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l platform-listen -d 'Address of the platform API, with which programs of the operator work on all accounts by platform keys, such as 127.0.0.1:8081. It is not served unless this is set. Let only these programs reach it' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l platform-webhook -d 'The URL that operational events are sent to as webhooks: endpoint.paused, delivery.exhausted, key.expiring, account.approved, app.authorized and app.revoked. Without it they are not recorded. Every node needs the same' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l rate-limit -d 'The number of requests per minute that are allowed for each API key, and for each address without a valid key. `svc account set` sets another limit for the keys of one account' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l write-rate-limit -d 'The number of writes per minute that are allowed for each API key, per method and route of a resource, such as quotes=20. Can be repeated or separated by commas. `svc account set` sets other limits for the keys of one account' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l max-webhooks -d 'The number of webhook subscriptions that each account can have, from 1 to 1000. `svc account set` sets another limit for one account' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l event-kinds -d 'A JSON file with your own event kinds: an object of JSON Schemas by the names of their kinds, such as order.shipped. The same on every node' -r -F
complete -c svc-server -n "__fish_svc_server_needs_command" -l webhook-timeout -d 'The timeout of one webhook delivery attempt, from resolving the host name to the end of the response, such as 10s. At most 1h' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l webhook-max-timeout -d 'The longest timeout that a webhook subscription can have instead, from 1s to 30s' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l webhook-retry -d 'The delays before the retries of a webhook delivery, separated by commas. Up to 10 % is added to each at random' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l webhook-concurrency -d 'The highest number of webhook delivery attempts at the same time. One account can use half of them' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l egress-proxy -d 'An HTTP proxy that all webhook deliveries go through (CONNECT), such as http://USER:PASSWORD@HOST:PORT, so that receivers can allow static addresses. Addresses are still resolved and checked here. Set it in the environment, as other users can see flags' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l egress-proxy-resolves -d 'Whether the proxy of --egress-proxy resolves host names. With on, it has to keep deliveries from private addresses: svc then refuses only those that are written in URLs' -r -f -a "on\t''
off\t''"
complete -c svc-server -n "__fish_svc_server_needs_command" -l idempotency-ttl -d 'How long the response to a request with an Idempotency-Key is stored. A retry with the same key gets it again' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l stream -d 'The broker that all events of all accounts are sent to as well: nats://HOST:PORT/PREFIX, amqp://USER:PASSWORD@HOST:PORT/VHOST/EXCHANGE or kafka://HOST:PORT/TOPIC, and with TLS tls://, amqps:// and kafka+ssl://. The program must be built with the feature of the broker' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l retention -d 'How long events are stored, with their deliveries and the logs of attempts. That includes deliveries that are held for a paused subscription. Pending deliveries are kept, and so are their events' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l request-log -d 'Whether requests to the API are logged for their account, without bodies: the newest 1,000 of the last 24 hours' -r -f -a "on\t''
off\t''"
complete -c svc-server -n "__fish_svc_server_needs_command" -l docs -d 'Whether the API reference is served at /docs' -r -f -a "on\t''
off\t''"
complete -c svc-server -n "__fish_svc_server_needs_command" -l extensions -d 'Whether the API has operations beyond its contract, with which programs of an account fetch the events and deliveries that they missed, and send them again' -r -f -a "on\t''
off\t''"
complete -c svc-server -n "__fish_svc_server_needs_command" -l overdue -d 'Whether invoices that were not paid in time become overdue by themselves, once a day after midnight in the time zone of their account. With off, run `svc invoice overdue`' -r -f -a "on\t''
off\t''"
complete -c svc-server -n "__fish_svc_server_needs_command" -l dashboard -d 'Whether the dashboard is served at /dashboard, where people of an account and operators sign in with a link of `svc dashboard link`, and members at the provider of --oidc-issuer' -r -f -a "on\t''
off\t''"
complete -c svc-server -n "__fish_svc_server_needs_command" -l dashboard-frame-ancestor -d 'The origin of pages that may show the dashboard in a frame, such as `https://app.example.com`. It must belong to the same site as this server, or browsers keep the cookie of the session from the frame' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l public-url -d 'The URL at which the world reaches this server, such as `https://api.example.com`. It names the server to apps, so it is never taken from a request. For trying, `http://127.0.0.1:8080` is fine' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l oauth -d 'Whether owners can let third-party apps work on their accounts (OAuth 2.0). Requires --public-url, and the dashboard, in which owners consent' -r -f -a "on\t''
off\t''"
complete -c svc-server -n "__fish_svc_server_needs_command" -l oauth-clients -d 'The apps that owners can connect. Requires --oauth on' -r -f -a "registered\t'Those that were registered with the operator'
metadata\t'Registered apps and those that publish their description at a URL, their client id, as assistants do. The page of consent says that nobody has verified them'"
complete -c svc-server -n "__fish_svc_server_needs_command" -l mcp -d 'Whether assistants find tools at /mcp, and at /mcp/readonly those that change nothing (Model Context Protocol). They need an API key, or with --oauth on the consent of an owner. Requests must be for the host of --public-url, or for localhost' -r -f -a "on\t''
off\t''"
complete -c svc-server -n "__fish_svc_server_needs_command" -l oidc-issuer -d 'The issuer of an identity provider (OpenID Connect), such as `https://id.example.com`, with which members sign in to the dashboard. Requires --oidc-client-id and --oidc-client-secret. Register the address of this server followed by /dashboard/oidc/callback there' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l oidc-client-id -d 'The client that the identity provider knows this server as' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l oidc-client-secret -d 'The secret of this client. Set it in the environment, as other users can see flags' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l oidc-ca -d 'PEM file with the identity provider\'s certificate authorities, in place of the public ones. Read at start' -r -F
complete -c svc-server -n "__fish_svc_server_needs_command" -l shutdown-grace -d 'How long requests and webhook delivery attempts in progress may take to finish after SIGTERM or SIGINT' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l log-format -d 'The format of the log on stderr' -r -f -a "text\t'One line of text per event, for people'
json\t'One JSON object per line, for log collectors'"
complete -c svc-server -n "__fish_svc_server_needs_command" -l tls-cert -d 'A file with the TLS certificate chain in PEM, to serve https. Requires --tls-key. Both files are reloaded on SIGHUP' -r -F
complete -c svc-server -n "__fish_svc_server_needs_command" -l tls-key -d 'A file with the private key of the certificate in PEM. Requires --tls-cert' -r -F
complete -c svc-server -n "__fish_svc_server_needs_command" -l trusted-proxy -d 'A proxy whose X-Forwarded-For header is trusted: an address, or a network such as 10.0.0.0/8. Can be repeated or separated by commas. Without any, the header is ignored' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l cors-origin -d 'An origin that browsers may call the API from (CORS), such as `https://app.example.com`. Can be repeated or separated by commas' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l max-connections -d 'The highest number of open connections. When they are used up, a new one closes the oldest idle or unfinished connection of the address with the most; if there is none, it waits' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l keep-alive -d 'How long a connection stays open without a request, from 1s to 1h. It must be longer than a load balancer or proxy in front keeps idle connections: 60s by default at AWS, 600s at Google Cloud' -r
complete -c svc-server -n "__fish_svc_server_needs_command" -l demo -d 'Start with a demo account, an API key and sample data, and allow http:// and private addresses in webhook URLs'
complete -c svc-server -n "__fish_svc_server_needs_command" -l allow-private-webhooks -d 'Allow http:// and private addresses in webhook URLs. For development only: it lets the accounts of the API send requests into the network of the server'
complete -c svc-server -n "__fish_svc_server_needs_command" -l no-rate-limit -d 'Disable all rate limits'
complete -c svc-server -n "__fish_svc_server_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c svc-server -n "__fish_svc_server_needs_command" -s V -l version -d 'Print version'
complete -c svc-server -n "__fish_svc_server_needs_command" -f -a "healthcheck" -d 'Check whether the server on this machine is healthy, and exit with 0 or 1'
complete -c svc-server -n "__fish_svc_server_using_subcommand healthcheck" -l config -d 'A file of settings in TOML with the names of the flags, such as listen = ":8080". Flags and environment variables win over it' -r -F
complete -c svc-server -n "__fish_svc_server_using_subcommand healthcheck" -l ops-listen -d 'The address and port of the operations listener, which serves /metrics, /healthz and /readyz. The default is 127.0.0.1:9464, if that port is free' -r
complete -c svc-server -n "__fish_svc_server_using_subcommand healthcheck" -l ready -d 'Check /readyz, which needs the database, in place of /healthz, which needs the process alone'
complete -c svc-server -n "__fish_svc_server_using_subcommand healthcheck" -s h -l help -d 'Print help (see more with \'--help\')'
