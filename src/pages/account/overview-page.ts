import { card } from '../../http/html/elements'
import { type Html, html } from '../../http/html/html'
import type { Reader } from '../../http/html/reader'

/** One part of the account, with a link to change it. */
export interface OverviewRow {
  readonly label: string
  readonly value: string | Html
  readonly href: string
  /** The text of the link. Screen readers read the label after the text. */
  readonly action: string
}

/** Lists the parts of the account. */
export function overviewPage(reader: Reader, email: string, rows: readonly OverviewRow[]): Html {
  return card(
    html`<h1>${reader.text('account.title')}</h1>
<p class="lead">${reader.text('account.signed_in_as')} <strong>${email}</strong></p>
`,
    rows.length === 0
      ? null
      : html`<ul class="rows">${rows.map(row)}</ul>
`,
  )
}

function row({ label, value, href, action }: OverviewRow): Html {
  return html`<li class="row"><div><p class="hint">${label}</p><p>${value}</p></div><a href="${href}" aria-label="${action}: ${label}">${action}</a></li>
`
}
