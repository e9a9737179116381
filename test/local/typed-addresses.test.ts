import { afterEach, describe, expect, test } from 'vitest'
import { mfaSettings } from '../mfa/people'
import { faultOf, sendForm } from '../page-routes/people'
import { type Mounted, mount } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases, type OpenDatabase } from '../support/databases'
import { linkTemplates, mailbox } from '../support/mailbox'
import { password, post } from './people'

/** Addresses that a table of the host's own may hold, although sign-up refuses them: each is a failed login on every database. */
const possible = [
  'ana@exämple.test',
  'аня@пример.test',
  'ana\u{1f600}@example.test',
  'root@localhost',
  '"ana b"@example.test',
  ' ana@example.test ',
]

const impossible = [
  'not-an-address',
  '',
  '@',
  'ana@',
  '@example.test',
  'ana@example..test',
  'ana@exa mple.test',
  'ana b@example.test',
  'ana@bo@example.test',
  'ana\0@example.test',
  'ana\ud800@example.test',
  "' or 1=1 --",
  '%',
  '\\',
  'x'.repeat(320),
]

const throttle = { login: false, links: false, routes: false } as const

describe.each(await databases())('an address that sign-up refuses, on $name', (database) => {
  let opened: OpenDatabase | undefined
  let mounted: Mounted | undefined
  afterEach(async () => {
    await mounted?.close()
    await opened?.close()
  })

  test('is a failed login and an ordinary request for a link', async () => {
    opened = await database.open()
    mounted = await mount({ knex: opened.knex, settings: linkTemplates, options: { mailer: mailbox(), throttle } })
    // As a table of the host's own may be; other databases have one character set for all.
    if (database.name === 'mariadb')
      await opened.knex.raw('alter table auth_users modify email varchar(320) character set ascii collate ascii_bin not null')
    for (const email of possible) {
      expect((await post(mounted, '/login', { email, password })).status, email).toBe(401)
      expect((await post(mounted, '/password-reset/request', { email })).status, email).toBe(202)
    }
    expect(mounted.logs.entries.filter(({ level }) => level === 'error')).toEqual([])
  })
})

describe('a text that cannot be an address', () => {
  const start = appPerTest()

  test('is 422 VALIDATION_ERROR at every login and request route, and no attempt is counted (25.9.6)', async () => {
    const settings = { ...linkTemplates, ...mfaSettings, tokenDelivery: 'both' as const, emailLogin: 'code' as const }
    const host = await start({ settings, options: { mailer: mailbox(), throttle: { login: { attempts: 1, windowSeconds: 900 } } } })
    const logins = ['/login', '/session/login', '/cookie/login']
    const requests = ['/activation/request', '/password-reset/request', '/email-login/request']
    for (const path of [...logins, ...requests])
      for (const email of impossible) {
        const { status, body } = await post(host, path, { email, ...(logins.includes(path) && { password }) })
        expect([path, email, status, body.code, body.details.errors?.[0].path]).toEqual([path, email, 422, 'VALIDATION_ERROR', 'email'])
      }
  })

  test('is refused on the sign-in page with the sentence of that field (25.9.6)', async () => {
    const settings = { ...linkTemplates, tokenDelivery: 'cookie', pagesEnabled: true, oauthSuccessRedirect: '/' } as const
    const host = await start({ settings, options: { mailer: mailbox() } })
    const page = await sendForm(host.browser(), '/auth/login', { email: 'not-an-address', password })
    expect([page.status, faultOf(page.text, 'email')]).toEqual([400, 'Please enter an email address, such as name@example.com.'])
  })
})
