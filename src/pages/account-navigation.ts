import type { Part } from '../http/html/elements'
import { type Html, html } from '../http/html/html'
import type { Reader } from '../http/html/reader'

/** Returns the list of the existing account pages, with a mark on the open page. */
export function accountNavigation(reader: Reader, pages: readonly { path: string; label: string }[], open: string): Html {
  const links = pages.map(({ path, label }) => html`<li><a href="${reader.href(path)}"${currentIn(path, open)}>${label}</a></li>`)
  return html`<nav class="pages" aria-label="${reader.text('nav.label')}"><ul>${links}</ul></nav>
`
}

/**
 * Returns the attribute that marks an entry. An entry is marked if the open page has the path of the entry, or a path below that path.
 * Exception: `/account` is marked only if its own page is open.
 */
function currentIn(path: string, open: string): Part {
  if (path === open) return html` aria-current="page"`
  return path !== '/account' && open.startsWith(`${path}/`) ? html` aria-current="true"` : null
}
