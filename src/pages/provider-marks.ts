import { Html, html, type Part } from '../http/html/document'
import { isPassportProvider, type Provider } from '../providers/passport-provider'

export interface ListedProvider {
  readonly key: string
  readonly name: string
  readonly mark: Part
}

/** Our own drawings on a square of 24 units. */
const paths: ReadonlyMap<string, string> = new Map([
  [
    'apple',
    'M12 8c1.2-1 2.6-1.3 4-.9 1.2.3 2.1 1 2.7 1.9-2.4 1.5-2 5.2.7 6.3-.9 2.6-2.7 5.4-4.6 5.4-1.1 0-1.6-.6-2.8-.6s-1.8.6-2.8.6c-2.3 0-4.6-4.2-4.6-7.8 0-3.7 2.3-5.9 4.7-5.9 1 0 1.9.4 2.7 1zM12.3 6.2c-.1-1.9 1.3-3.6 3.2-3.9.2 2-1.3 3.8-3.2 3.9z',
  ],
  [
    'discord',
    'M7 6.5c3-1.3 7-1.3 10 0 2 3 3 6.5 2.8 10.3-1.5 1.1-2.9 1.7-4.3 2l-1-1.8c-1.6.4-3.4.4-5 0l-1 1.8c-1.4-.3-2.8-.9-4.3-2C4 13 5 9.5 7 6.5zm2.2 5a1.5 1.7 0 1 0 0 3.4 1.5 1.7 0 0 0 0-3.4zm5.6 0a1.5 1.7 0 1 0 0 3.4 1.5 1.7 0 0 0 0-3.4z',
  ],
  ['facebook', 'M13.5 21v-7.8h2.7l.4-3.2h-3.1V8c0-.9.3-1.5 1.6-1.5h1.6V3.7c-.3 0-1.2-.1-2.3-.1-2.3 0-3.9 1.4-3.9 4V10H7.8v3.2h2.7V21z'],
  [
    'github',
    'M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm-4.3 5.2 2.3 1.2a8 8 0 0 1 4 0l2.3-1.2.3 3.1c.6.8.9 1.7.9 2.7 0 2.6-2.3 4.2-5.2 4.2s-5.2-1.6-5.2-4.2c0-1 .3-1.9.9-2.7z',
  ],
  ['gitlab', 'M12 21 3 13.5l2.2-8 2.3 5.5h9l2.3-5.5 2.2 8z'],
  ['google', 'M12 10.6v3h4.3a4.6 4.6 0 1 1-1.3-5.1l2.2-2.2a7.7 7.7 0 1 0 2.5 5.6c0-.4 0-.9-.1-1.3z'],
  [
    'linkedin',
    'M4 9.5h3.2V20H4zM5.6 4.3a1.9 1.9 0 1 1 0 3.8 1.9 1.9 0 0 1 0-3.8zM9.6 9.5h3.1v1.4c.5-.9 1.6-1.7 3.2-1.7 3.3 0 4.1 2 4.1 4.8v6h-3.2v-5.4c0-1.3-.2-2.6-1.8-2.6s-2.1 1.2-2.1 2.6V20H9.6z',
  ],
  ['microsoft', 'M3 3h8.5v8.5H3zM12.5 3H21v8.5h-8.5zM3 12.5h8.5V21H3zM12.5 12.5H21V21h-8.5z'],
  ['slack', 'M9 3h2v6H5V7h4zM15 3h-2v6h6V7h-4zM9 21h2v-6H5v2h4zM15 21h-2v-6h6v2h-4z'],
  ['twitch', 'M5 3h15v10l-4 4h-4l-3 3v-3H5zm5 4v5h2V7zm5 0v5h2V7z'],
])

export function listedProvider(providers: ReadonlyMap<string, Provider>, key: string): ListedProvider {
  return { key, name: providerName(key), mark: markOf(key, providers.get(key)) }
}

/** In the colour of the text: the client's `icon`, else our drawing, else none. */
function markOf(key: string, client: Provider | undefined): Part {
  const own = client === undefined || isPassportProvider(client) ? null : client
  const path = paths.get(own?.providerName ?? key) ?? paths.get(key)
  if (own?.icon !== undefined) return html`<span class="mark" aria-hidden="true">${new Html(own.icon)}</span>`
  return path === undefined
    ? null
    : html`<span class="mark" aria-hidden="true"><svg viewBox="0 0 24 24" fill="currentColor" fill-rule="evenodd" focusable="false"><path d="${path}"/></svg></span>`
}

const known: ReadonlyMap<string, string> = new Map([
  ['github', 'GitHub'],
  ['gitlab', 'GitLab'],
  ['linkedin', 'LinkedIn'],
])

export function providerName(key: string): string {
  return known.get(key) ?? key.replace(/[:_-]+/g, ' ').replace(/(^| )\w/g, (letter) => letter.toUpperCase())
}
