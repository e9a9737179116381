import type { AuthMethod } from '../../core/amr'
import { NotFoundError } from '../../core/errors'
import type { TextKey } from '../../core/texts/phrase-book'
import { html } from '../../http/html/document'
import type { Reader } from '../../http/html/reader'
import { readBrowser } from '../../http/locale'
import type { PublicSession } from '../../sessions/find-session'
import { listSessions } from '../../sessions/list-routes'
import { listTrustedDevices } from '../../trusted-devices/routes'
import { trustedDevicesOf } from '../../trusted-devices/trust-cookie'
import type { AccountPage } from '../account-page'
import { providerName } from '../provider-marks'
import { devicesPage, type ListedDevice, trustedCard } from './devices-page'

export const devices: AccountPage = {
  page: 'devices',
  path: '/account/devices',
  title: 'devices.title',
  navigation: 'devices.nav',
  sentences: { NOT_FOUND: 'devices.gone' },
  isThere: ({ store }) => store.sessions !== undefined,
  async show({ ctx, req, reader, person, session, formOf }, state) {
    const sessions = await listSessions(ctx, person.id)
    const devices = sessions.map((each) => deviceOf(reader, each, session.session?.id))
    const trusted = trustedDevicesOf(ctx) ? await listTrustedDevices(ctx, person.id, req) : []
    return html`${devicesPage(reader, state, { devices, formOf })}${trusted.length === 0 ? null : trustedCard(reader, trusted, formOf)}`
  },
  async post({ ask }, { action, session = '', trusted }) {
    if (trusted !== undefined) {
      await ask.removeTrustedDevice(trusted).catch(unlessGone)
      return { notice: 'device_untrusted' }
    }
    if (action === 'others') {
      await ask.revokeOtherSessions()
      return { notice: 'others_signed_out' }
    }
    await ask.revokeSession(session)
    return { notice: 'device_signed_out' }
  },
}

/** The trust ended meanwhile, for example in another tab. */
function unlessGone(error: unknown): void {
  if (!(error instanceof NotFoundError)) throw error
}

function deviceOf(reader: Reader, session: PublicSession, currentId: string | undefined): ListedDevice {
  const { id, ip, userAgent, createdAt, lastSeenAt } = session
  return {
    id,
    ip,
    name: nameOf(reader, userAgent ?? ''),
    signedInAt: createdAt,
    lastSeenAt,
    method: methodOf(reader, session),
    isCurrent: id === currentId,
  }
}

function nameOf(reader: Reader, userAgent: string): string {
  const { browser, system } = readBrowser(userAgent)
  if (browser !== null && system !== null) return reader.text('devices.browser_on', { browser, system })
  return browser ?? system ?? reader.text('devices.unknown')
}

function methodOf(reader: Reader, { amr, provider }: PublicSession): string {
  const methods = amr.map((method) => (method === 'ext' && provider !== null ? providerName(provider) : reader.text(words[method])))
  return methods.join(', ')
}

const words: Readonly<Record<AuthMethod, TextKey>> = {
  pwd: 'method.password',
  otp: 'method.code',
  ext: 'method.provider',
  email: 'method.email',
  passkey: 'method.passkey',
}
