// Starts the viewer of the API reference. Everything that would ask another host is turned off, and the policy of the page
// refuses it besides.
"use strict";

/** Returns a name as a heading: `webhook-events` as "Webhook events". */
const heading = (name) => name[0].toUpperCase() + name.slice(1).replaceAll('-', ' ');

/** Returns the document with headings for its groups, and a group of events for each kind of record. */
const grouped = (document) => {
  const tags = (document.tags ?? []).map((tag) => ({
    ...tag,
    'x-displayName': heading(tag.name),
    description: tag.description?.replaceAll('below `webhook-events`', 'below'),
  }));
  const groups = new Map();
  for (const [kind, { post }] of Object.entries(document.webhooks ?? {})) {
    const name = `${kind.split('.')[0]}-events`;
    groups.set(name, { name, 'x-displayName': heading(name), description: 'The requests that an endpoint receives.' });
    post.tags = [name];
  }
  return { ...document, tags: [...tags.filter((tag) => tag.name !== 'webhook-events'), ...groups.values()] };
};

/** Returns a page of the dashboard, or throws what to do about it. */
const ask = async (url, form) => {
  const response = await fetch(url, form && { method: 'POST', body: new URLSearchParams(form) });
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  if (response.status === 401) throw new Error('Sign in to the dashboard first, then come back.');
  if (!response.ok) throw new Error(page.querySelector('main p')?.textContent ?? 'The dashboard made no key.');
  return page;
};

/** Makes a key in the dashboard, for the session of the reader, and hands it to the viewer. */
const offerKey = (dashboard, use) => {
  const element = document.querySelector('#trying');
  const [button, status] = element.children;
  element.hidden = false;
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      const url = `${dashboard}/keys/for-trying`;
      const csrf = (await ask(url)).querySelector('form[action$="/keys/for-trying"] input[name=csrf]')?.value;
      if (!csrf) throw new Error('Choose an account in the dashboard first, then come back.');
      use((await ask(url, { csrf })).querySelector('#key').value);
      status.textContent = 'Requests have the key “Trying the API” now, for an hour.';
    } catch (error) {
      status.textContent = error.message;
      button.disabled = false;
    }
  });
};

const configuration = {
  metaData: { title: 'API reference' },
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  // The key of the reader stays in the memory of the page.
  persistAuth: false,
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
    [id^="headlessui-popover-button"] { min-width: 24px; min-height: 24px; }
    #trying { padding: 8px 16px; font: 14px/1.5 system-ui, sans-serif; }
    .light-mode #trying { color: #1b1b1b; }
    .dark-mode #trying { color: #e7e7e7; }
    #trying button { min-height: 32px; padding: 2px 10px; font: inherit; cursor: pointer; }
    .operation-details { display: flex; flex-direction: column; }
    .operation-details > .request-body { order: -1; }
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
}

const reference = document.querySelector('#reference');
const start = (content) => {
  const viewer = Scalar.createApiReference('#reference', { ...configuration, content });
  const { dashboard } = reference.dataset;
  const use = (token) => viewer.updateConfiguration({
    ...configuration,
    content,
    authentication: { preferredSecurityScheme: 'bearer', securitySchemes: { bearer: { token } } },
  });
  if (dashboard) offerKey(dashboard, use);
};
fetch(reference.dataset.document)
  .then((response) => response.json())
  .then((content) => start(grouped(content)));
