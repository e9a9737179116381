import type { AuthContext } from '../../context'
import type { TextKey } from '../../core/texts/phrase-book'
import { card, type Html, html } from '../../http/html/document'
import type { Reader } from '../../http/html/reader'
import { listPasskeys } from '../../passkeys/manage'
import { hasPassword } from '../../passwords/verify-password'
import { listSessions } from '../../sessions/list-routes'
import { listIdentities } from '../../social/identities'
import type { AccountPage } from '../account-page'
import type { AccountVisit } from '../account-visit'
import { connections } from './connections'
import { deleteAccount } from './delete'
import { devices } from './devices'
import { email, isVerified, verifiedTag } from './email'
import { password } from './password'
import { profile } from './profile'
import { security } from './security'

type Value = string | Html

export const overview: AccountPage = {
  page: 'account',
  path: '/account',
  title: 'account.title',
  navigation: 'account.nav',
  isThere: () => true,
  async show(visit) {
    const { ctx, reader, person } = visit
    const there = rows.filter(({ page, isThere = page.isThere }) => isThere(ctx))
    const leaving = deleteAccount.isThere(ctx) ? reader.href(deleteAccount.path) : null
    return overviewPage(reader, person.email, await Promise.all(there.map((row) => rowOf(visit, row))), leaving)
  },
}

interface Row {
  readonly page: AccountPage
  /** Default: `isThere` of the page. */
  readonly isThere?: AccountPage['isThere']
  readonly label: TextKey
  /** `isEmpty` is true if there is nothing yet that a person could change. */
  state(visit: AccountVisit): State | Promise<State>
  /** Of the link, and if there is nothing yet. */
  readonly actions: readonly [some: TextKey, none?: TextKey]
}

interface State {
  readonly value: Value
  readonly isEmpty?: boolean
}

const rows: readonly Row[] = [
  {
    page: profile,
    label: 'account.name',
    state: ({ reader, person: { name } }) => ({ value: name ?? reader.text('account.unnamed'), isEmpty: name === null }),
    actions: ['account.change', 'account.add'],
  },
  {
    page: email,
    label: 'account.email',
    state: ({ ctx, reader, session: { user } }) => ({ value: html`${user.email} ${verifiedTag(reader, isVerified(ctx, user))}` }),
    actions: ['account.change'],
  },
  {
    page: password,
    label: 'field.password',
    state({ reader, session }) {
      const isSet = hasPassword(session.user)
      return { value: reader.text(isSet ? 'account.password_set' : 'account.password_none'), isEmpty: !isSet }
    },
    actions: ['account.change', 'account.set'],
  },
  {
    page: security,
    isThere: ({ settings }) => settings.passkeysEnabled,
    label: 'passkey.title',
    state: (visit) => count(visit, listPasskeys),
    actions: ['account.change', 'account.add'],
  },
  {
    page: security,
    isThere: ({ settings }) => settings.mfaEnabled,
    label: 'security.app',
    state: ({ reader, person: { mfaEnabled } }) => ({
      value: reader.text(mfaEnabled ? 'security.on' : 'security.off'),
      isEmpty: !mfaEnabled,
    }),
    actions: ['account.change', 'account.turn_on'],
  },
  {
    page: connections,
    label: 'connections.title',
    state: (visit) => count(visit, listIdentities),
    actions: ['account.see', 'account.add'],
  },
  { page: devices, label: 'devices.title', state: (visit) => count(visit, listSessions), actions: ['account.see'] },
]

async function count({ ctx, reader, person }: AccountVisit, list: (ctx: AuthContext, userId: string) => Promise<readonly unknown[]>) {
  const { length } = await list(ctx, person.id)
  return { value: reader.text('account.count', { count: length }), isEmpty: length === 0 }
}

async function rowOf(visit: AccountVisit, { page, label, state, actions: [some, none = some] }: Row): Promise<OverviewRow> {
  const { reader } = visit
  const { value, isEmpty = false } = await state(visit)
  return { label: reader.text(label), value, href: reader.href(page.path), action: reader.text(isEmpty ? none : some) }
}

interface OverviewRow {
  readonly label: string
  readonly value: string | Html
  readonly href: string
  /** Screen readers read the label after the text. */
  readonly action: string
}

/** @param leaving the page that deletes the account, or null */
function overviewPage(reader: Reader, email: string, rows: readonly OverviewRow[], leaving: string | null): Html {
  return card(
    html`<h1>${reader.text('account.title')}</h1>
<p class="lead">${reader.text('account.signed_in_as')} <strong>${email}</strong></p>
`,
    rows.length === 0
      ? null
      : html`<ul class="rows">${rows.map(row)}</ul>
`,
    leaving === null
      ? null
      : html`<p class="below"><a href="${leaving}">${reader.text('deletion.link')}</a></p>
`,
  )
}

function row({ label, value, href, action }: OverviewRow): Html {
  return html`<li class="row"><div><p class="hint">${label}</p><p>${value}</p></div><a href="${href}" aria-label="${action}: ${label}">${action}</a></li>
`
}
