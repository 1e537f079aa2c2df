// Gives each sample of a guide a button that copies it, and puts the key of the reader and the address of this server into those
// that send a key. The key stays in the session storage of the tab, where the reference puts one that the dashboard made.
const NAME = 'svc-key'
const KEY = /\$\{?SVC_KEY\}?|svc_live_…/g
const ADDRESS = /\$\{?SVC_URL\}?|https:\/\/api\.example\.com|http:\/\/127\.0\.0\.1:8080/g
// The script is below the path at which the service is mounted.
const address = new URL('..', document.currentScript.src).href.replace(/\/$/, '')

const samples = [...document.querySelectorAll('pre code')]
  .map((code) => ({ code, text: code.textContent }))
  .filter(({ text }) => text.search(KEY) >= 0)

/** Shows the samples with a key, or as they are written if it is empty. */
const show = (key) => {
  for (const { code, text } of samples) {
    code.textContent = key ? text.replaceAll(KEY, () => key).replaceAll(ADDRESS, () => address) : text
  }
}

if (samples.length) {
  const field = document.createElement('label')
  field.className = 'key'
  field.innerHTML = 'Your API key, for the samples of the guides <input type="password" autocomplete="off" spellcheck="false" maxlength="200" placeholder="svc_live_…">'
  const input = field.querySelector('input')
  input.value = sessionStorage.getItem(NAME) ?? ''
  input.addEventListener('input', () => {
    sessionStorage.setItem(NAME, input.value.trim())
    show(input.value.trim())
  })
  samples[0].code.parentElement.before(field)
  show(input.value)
}

// The clipboard is there over https and on the machine of the server.
if (navigator.clipboard) {
  for (const code of document.querySelectorAll('pre code')) {
    const box = document.createElement('div')
    const button = document.createElement('button')
    let shown
    box.className = 'sample'
    button.type = 'button'
    button.textContent = 'Copy'
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(code.textContent)
      button.textContent = 'Copied'
      clearTimeout(shown)
      shown = setTimeout(() => { button.textContent = 'Copy' }, 2000)
    })
    code.parentElement.replaceWith(box)
    box.append(code.parentElement, button)
  }
}
