// Starts the viewer of the API reference. Everything that would ask another host is turned off, and the policy of the page
// refuses it besides.
Scalar.createApiReference('#reference', {
  url: document.querySelector('#reference').dataset.document,
  metaData: { title: 'API reference' },
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  // The key of the reader stays in the memory of the page.
  persistAuth: false,
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
