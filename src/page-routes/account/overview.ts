import { type Html, html } from '../../http/html'
import { verifiedTag } from '../../pages/account/email-page'
import { type OverviewRow, overviewPage } from '../../pages/account/overview-page'
import { listPasskeys } from '../../passkeys/manage'
import { hasPassword } from '../../passwords/unusable-password'
import { listSessions } from '../../session/list-sessions'
import { listIdentities } from '../../social/identities'
import type { TextKey } from '../../texts/texts'
import type { AccountPage } from '../account-page'
import type { AccountVisit } from '../account-visit'
import { connections } from './connections'
import { devices } from './devices'
import { email, isVerified } from './email'
import { password } from './password'
import { profile } from './profile'
import { security } from './security'

type Value = string | Html

/** The first page of the account area. The page lists the parts of the account, with links to change them. */
export const overview: AccountPage = {
  page: 'account',
  path: '/account',
  title: 'account.title',
  navigation: 'account.nav',
  isThere: () => true,
  async show(visit) {
    const there = rows.filter(({ page, isThere = page.isThere }) => isThere(visit.ctx))
    return overviewPage(visit.reader, visit.person.email, await Promise.all(there.map((row) => rowOf(visit, row))))
  },
}

interface Row {
  readonly page: AccountPage
  /** Returns true if the row exists. Default: `isThere` of the page. */
  readonly isThere?: AccountPage['isThere']
  readonly label: TextKey
  value(visit: AccountVisit): Value | Promise<Value>
}

const rows: readonly Row[] = [
  { page: profile, label: 'account.name', value: ({ reader, person }) => person.name ?? reader.text('account.unnamed') },
  {
    page: email,
    label: 'account.email',
    value: ({ ctx, reader, session: { user } }) => html`${user.email} ${verifiedTag(reader, isVerified(ctx, user))}`,
  },
  {
    page: password,
    label: 'field.password',
    value: ({ reader, session }) => reader.text(hasPassword(session.user) ? 'account.password_set' : 'account.password_none'),
  },
  {
    page: security,
    isThere: ({ settings }) => settings.passkeysEnabled,
    label: 'passkey.title',
    value: async ({ ctx, reader, person }) => reader.text('account.count', { count: (await listPasskeys(ctx, person.id)).length }),
  },
  {
    page: security,
    isThere: ({ settings }) => settings.mfaEnabled,
    label: 'security.app',
    value: ({ reader, person }) => reader.text(person.mfaEnabled ? 'security.on' : 'security.off'),
  },
  {
    page: connections,
    label: 'connections.title',
    value: async ({ ctx, reader, person }) => reader.text('account.count', { count: (await listIdentities(ctx, person.id)).length }),
  },
  {
    page: devices,
    label: 'devices.title',
    value: async ({ ctx, reader, person }) => reader.text('account.count', { count: (await listSessions(ctx, person.id)).length }),
  },
]

async function rowOf(visit: AccountVisit, { page, label, value }: Row): Promise<OverviewRow> {
  const { reader } = visit
  return {
    label: reader.text(label),
    value: await value(visit),
    href: reader.href(page.path),
    action: reader.text(page === devices || page === connections ? 'account.see' : 'account.change'),
  }
}
