// Starts the viewer of the API reference. Everything that would ask another host is turned off, and the policy of the page
// refuses it besides.
const { document: url, key } = document.querySelector('#reference').dataset

/** Returns the document with a group of events for each kind of record. */
const grouped = (content) => {
  const groups = new Map()
  for (const [kind, { post }] of Object.entries(content.webhooks ?? {})) {
    const about = kind.split('.')[0]
    const name = `${about}-events`
    const title = `${about[0].toUpperCase()}${about.slice(1)} events`
    groups.set(name, { name, 'x-displayName': title, description: 'The requests that an endpoint receives.' })
    post.tags = [name]
  }
  const tags = content.tags.filter(({ name }) => name !== 'webhook-events').map((tag) => ({
    ...tag,
    description: tag.description?.replaceAll('below `webhook-events`', 'below'),
  }))
  // Requests go to the server of this page, by whatever name it was reached, as its policy lets no other.
  const servers = content.servers.map((server) => ({ ...server, url: new URL(server.url, location).pathname }))
  return { ...content, servers, tags: [...tags, ...groups.values()] }
}

// The guides put it into their samples. It ends with the tab.
if (key) sessionStorage.setItem('svc-key', key)

const start = (content) => Scalar.createApiReference('#reference', {
  content: grouped(content),
  metaData: { title: 'API reference' },
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  // A key that the reader types stays in the memory of the page.
  persistAuth: false,
  authentication: {
    preferredSecurityScheme: 'bearer',
    securitySchemes: {
      ...(key && { bearer: { token: key } }),
      // Where the server has apps, which require PKCE. The viewer does it if it is told so here; in a document, others give the
      // name another meaning. Most apps that sign in here are public and have no secret.
      ...(content.components?.securitySchemes?.oauth2 && {
        oauth2: { flows: { authorizationCode: { 'x-usePkce': 'SHA-256', 'x-scalar-credentials-location': 'body' } } },
      }),
    },
  },
  // Colours with the contrast of WCAG 2.2 AA, and a button that is large enough to hit.
  customCss: `
    .light-mode {
      --scalar-color-2: #5c5c5c;
      --scalar-color-3: #6b6b6b;
      --scalar-color-accent: #0062b8;
      --scalar-color-blue: #0062b8;
      --scalar-color-green: #08724a;
      --scalar-color-orange: #a64b00;
      --scalar-color-red: #c5121d;
      --scalar-color-yellow: #7a5d00;
    }
    .dark-mode {
      --scalar-color-2: #b4b4b4;
      --scalar-color-3: #9c9c9c;
      --scalar-color-red: #ff8078;
    }
    [id^="headlessui-popover-button"], button[aria-controls^="scalar-refs"] { min-width: 24px; min-height: 24px; }
    /* What one reads of an event first is its body. */
    .operation-details { display: flex; flex-direction: column; }
    .operation-details > :has([id*=".headers."]) { order: 1; }
    .operation-details > :last-child { order: 2; }
    #bar { display: flex; flex-wrap: wrap; gap: 4px 24px; margin: 0; padding: 8px 24px; }
    #bar { background: var(--scalar-background-2); color: var(--scalar-color-1); font: 14px/1.5 var(--scalar-font); }
    #bar a { color: var(--scalar-color-accent); text-decoration: underline; }
  `,
  // Examples in curl, Python, JavaScript and Rust.
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  hiddenClients: {
    c: true,
    clojure: true,
    csharp: true,
    dart: true,
    fsharp: true,
    go: true,
    http: true,
    java: true,
    julia: true,
    kotlin: true,
    node: true,
    objc: true,
    ocaml: true,
    php: true,
    powershell: true,
    r: true,
    ruby: true,
    swift: true,
    js: ['axios', 'jquery', 'ofetch', 'xhr'],
    python: ['aiohttp', 'httpx_async', 'httpx_sync', 'python3'],
    shell: ['httpie', 'wget'],
  },
})

fetch(url).then((response) => response.json()).then(start)
