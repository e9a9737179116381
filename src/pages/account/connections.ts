import type { AuthContext } from '../../context'
import type { TextKey } from '../../core/texts/phrase-book'
import { card, type FormState, form, type Html, hidden, html, linkButton, type Part, problem, time } from '../../http/html/document'
import type { Reader } from '../../http/html/reader'
import { queryParameter } from '../../http/locale'
import { listIdentities } from '../../social/identities'
import type { AccountPage } from '../account-page'
import type { AccountVisit } from '../account-visit'
import { authorizeOrigins } from '../confirmation'
import { FormFault } from '../form-fault'
import { Elsewhere } from '../page-lines'
import { type ListedProvider, listedProvider, providerName } from '../provider-marks'

const sentences: Readonly<Record<string, TextKey>> = {
  EMAIL_NOT_VERIFIED: 'account.verify_first',
  LAST_LOGIN_METHOD: 'connections.last',
  OAUTH_ACCOUNT_NOT_LINKED: 'connections.gone',
  OAUTH_IDENTITY_TAKEN: 'connections.taken',
  OAUTH_PROVIDER_ALREADY_LINKED: 'connections.already',
  OAUTH_PROVIDER_DENIED: 'connections.denied',
}

export const connections: AccountPage = {
  page: 'connections',
  path: '/account/connections',
  title: 'connections.title',
  navigation: 'connections.nav',
  sentences,
  isThere: ({ settings, providers }) => settings.oauthEnabled && providers.size > 0,
  needsFresh: true,
  formTargets: (ctx) => authorizeOrigins({ ctx }, [...ctx.providers.keys()]),
  async show(visit, state) {
    const { ctx, req, reader, person, formOf } = visit
    const linked = new Map((await listIdentities(ctx, person.id)).map((identity) => [identity.provider, identity]))
    // The provider's callback adds the error code.
    const failed = req.method === 'GET' ? queryParameter(req, 'error', 64) : null
    const presented = failed === null ? state : { ...state, problem: reader.text(sentences[failed] ?? 'connections.failed') }
    const connections = [...new Set([...ctx.providers.keys(), ...linked.keys()])].map((key) => ({
      ...listedProvider(ctx.providers, key),
      since: linked.get(key)?.createdAt ?? null,
      email: linked.get(key)?.email ?? null,
    }))
    return connectionsPage(reader, presented, { connections, formOf })
  },
  async post({ ctx, ask, reader }, { provider = '' }) {
    if (!ctx.providers.has(provider)) throw new FormFault({ form: 'connections.gone' })
    const { authorizeUrl } = await ask.beginLink({ provider, returnTo: reader.href('/account/connections') })
    throw new Elsewhere({ to: authorizeUrl })
  },
}

export const removeConnection: AccountPage = {
  page: 'removeConnection',
  path: '/account/connections/remove',
  title: 'connections.title',
  sentences,
  isThere: (ctx) => connections.isThere(ctx),
  needsFresh: true,
  async show(visit, state) {
    const provider = await linkedProvider(visit, state.values['provider'] ?? queryParameter(visit.req, 'provider', 64))
    if (provider === null) throw new Elsewhere({ to: visit.reader.href('/account/connections') })
    return removeConnectionPage(visit.reader, state, { provider, name: providerName(provider), formOf: visit.formOf })
  },
  async post({ ask }, { provider = '' }) {
    await ask.unlinkIdentity(provider)
    return { notice: 'connection_removed', to: '/account/connections' }
  },
}

async function linkedProvider({ ctx, person }: AccountVisit & { ctx: AuthContext }, key: string | null): Promise<string | null> {
  const linked = await listIdentities(ctx, person.id)
  return linked.find(({ provider }) => provider === key)?.provider ?? null
}

interface ListedConnection extends ListedProvider {
  /** Null if the provider is not connected. */
  readonly since: Date | null
  readonly email: string | null
}

function connectionsPage(
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

function removeConnectionPage(
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
