import { card, form, hidden, linkButton, type Part, problem, time } from '../../http/html/elements'
import type { FormState } from '../../http/html/form-state'
import { type Html, html } from '../../http/html/html'
import type { Reader } from '../../http/html/reader'
import type { ListedProvider } from '../provider-marks'

export interface ListedConnection extends ListedProvider {
  /** Null if the provider is not connected. */
  readonly since: Date | null
  readonly email: string | null
}

/** Lists the providers with which the person can log in. */
export function connectionsPage(
  reader: Reader,
  state: FormState,
  { connections, formOf }: { connections: readonly ListedConnection[]; formOf: Part },
): Html {
  return card(
    html`<h1>${reader.text('connections.title')}</h1>
<p class="lead">${reader.text('connections.lead')}</p>
`,
    problem(state),
    html`<ul class="rows">${connections.map((connection) => row(reader, connection, formOf))}</ul>
`,
  )
}

function row(reader: Reader, connection: ListedConnection, formOf: Part): Html {
  const { key, name, mark, since, email } = connection
  const details = since === null ? reader.text('connections.none') : connectedSince(reader, since, email)
  return html`<li class="row"><div><p><strong>${name}</strong></p><p class="hint">${details}</p></div>${
    since === null
      ? form({
          fields: [formOf, hidden('provider', key)],
          button: reader.text('connections.connect', { provider: name }),
          mark,
          look: 'second',
        })
      : linkButton(
          reader.href('/account/connections/remove', { provider: key }),
          reader.text('connections.remove', { provider: name }),
          'second',
        )
  }</li>
`
}

function connectedSince(reader: Reader, since: Date, email: string | null): Html {
  return html`${email === null ? null : html`${email}, `}${reader.text('connections.since')} ${time(reader, since)}`
}

/** Asks for confirmation before the account is disconnected from a provider. */
export function removeConnectionPage(
  reader: Reader,
  state: FormState,
  { provider, name, formOf }: { provider: string; name: string; formOf: Part },
): Html {
  return card(
    html`<h1>${reader.text('connections.remove_title', { provider: name })}</h1>
<p class="lead">${reader.text('connections.remove_lead', { provider: name })}</p>
`,
    problem(state),
    form({
      fields: [formOf, hidden('provider', provider)],
      button: reader.text('connections.remove', { provider: name }),
      look: 'danger',
    }),
    html`<p class="below"><a href="${reader.href('/account/connections')}">${reader.text('connections.keep', { provider: name })}</a></p>
`,
  )
}
