import { expect, test } from 'vitest'
import { appPerTest } from '../support/app-per-test'
import { linkTemplates, mailbox, tokenOf } from '../support/mailbox'
import { password, post, userOf } from './people'

const start = appPerTest()

const kelvin = '\u212a'
const refused: [what: string, email: unknown][] = [
  ['missing', undefined],
  ['null', null],
  ['a number', 7],
  ['an array', ['ana@example.test']],
  ['an array of two', ['ana@example.test', 'mallory@example.test']],
  ['an object', { email: 'ana@example.test' }],
  ['empty', ''],
  ['a comma list', 'ana@example.test,mallory@example.test'],
  ['a semicolon list', 'ana@example.test;mallory@example.test'],
  ['a list with a blank', 'ana@example.test mallory@example.test'],
  ['CRLF and a header', 'ana@example.test\r\nBcc: mallory@example.test'],
  ['NUL', 'ana\0@example.test'],
  ['a dot at the end', 'ana@example.test.'],
  ['a quoted local part', '"ana"@example.test'],
  ['a display name', 'Ana <ana@example.test>'],
  ['a full-width @', 'ana\uff20example.test'],
  ['a dotted capital I', '\u0130na@example.test'],
  ['a Kelvin sign', `${kelvin}ana@example.test`],
  ['an umlaut in the domain', 'ana@exämple.test'],
  ['two @', 'ana@evil@example.test'],
  ['one domain segment', 'ana@localhost'],
  ['321 characters', `${'a'.repeat(63)}@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.${'e'.repeat(60)}.${'f'.repeat(8)}.test`],
]

/** What sign-up refuses and a table of the host's own may hold. */
const possible: readonly string[] = [
  'a dot at the end',
  'a quoted local part',
  'a dotted capital I',
  'a Kelvin sign',
  'an umlaut in the domain',
  'one domain segment',
]

test.each(refused)('R-079 (d) an address that is %s is 422 at signup, and nothing is asked or written', async (what, email) => {
  const mails = mailbox()
  const host = await start({ settings: linkTemplates, options: { mailer: mails } })
  const paths = possible.includes(what) ? ['/signup'] : ['/signup', '/login', '/activation/request', '/password-reset/request']

  for (const path of paths) {
    const { status, body } = await post(host, path, { email, password })
    expect([status, body.code, body.details.errors?.[0]?.path], path).toEqual([422, 'VALIDATION_ERROR', 'email'])
    if (typeof email === 'string' && email !== '') expect(JSON.stringify(body)).not.toContain(email.slice(0, 12))
  }
  expect(await host.knex('auth_users')).toEqual([])
  expect(mails.mails).toEqual([])
})

test.each(refused.filter(([what]) => possible.includes(what)))(
  'an address that is %s is a failed login and an ordinary request for a link, like any that nobody has',
  async (_what, email) => {
    const mails = mailbox()
    const host = await start({ settings: linkTemplates, options: { mailer: mails } })
    const unknown = { email: 'nobody@example.test', password }

    for (const path of ['/login', '/activation/request', '/password-reset/request']) {
      const [wrong, plain] = [await post(host, path, { email, password }), await post(host, path, unknown)]
      expect([wrong.status, wrong.body], path).toEqual([plain.status, plain.body])
      expect(wrong.status).toBe(path === '/login' ? 401 : 202)
    }
    expect(mails.mails).toEqual([])
  },
)

test.each(['ana@localhost', 'ANA@exämple.test', 'ana..b@example.test'])(
  'a row that a host brought with the address %j logs in by it, and gets its reset link',
  async (typed) => {
    const mails = mailbox()
    const host = await start({ settings: linkTemplates, options: { mailer: mails } })
    await post(host, '/signup', { email: 'ana@example.test', password })
    await post(host, '/activate', { token: tokenOf(await mails.next({ kind: 'activation' })) })
    const stored = typed.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
    await host.knex('auth_users').update({ email: stored })

    expect((await post(host, '/login', { email: typed, password })).status).toBe(200)
    expect((await host.auth.service.logIn({ email: typed, password })).kind).toBe('session')
    expect((await post(host, '/password-reset/request', { email: typed })).status).toBe(202)
    expect((await mails.next({ kind: 'password_reset' })).to).toBe(stored)
  },
)

const longest = `${'a'.repeat(60)}@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.${'e'.repeat(60)}.test`

test.each([
  ['Ana@Example.TEST', 'ana@example.test', 'ANA@EXAMPLE.test'],
  ['KELVIN-I@example.test', 'kelvin-i@example.test', 'Kelvin-I@example.test'],
  ["o'hara+tag_1.x@example.co.uk", "o'hara+tag_1.x@example.co.uk", "O'Hara+TAG_1.x@Example.CO.UK"],
  ['xn--na-jia@xn--exmple-cua.test', 'xn--na-jia@xn--exmple-cua.test', 'XN--NA-JIA@xn--exmple-cua.test'],
  [longest, longest, longest.toUpperCase()],
])('R-079 (d) %s is stored as %s, and every ASCII spelling of it is that one account', async (given, stored, spelling) => {
  const mails = mailbox()
  const host = await start({ settings: linkTemplates, options: { mailer: mails } })

  expect((await post(host, '/signup', { email: given, password })).status).toBe(201)
  await post(host, '/activate', { token: tokenOf(await mails.next({ kind: 'activation' })) })
  expect((await userOf(host, stored)).email).toBe(stored)
  expect((await post(host, '/login', { email: spelling, password })).status).toBe(200)
  // Taken, in whatever spelling: its owner is told, and no second row is there.
  expect((await post(host, '/signup', { email: spelling, password })).status).toBe(201)
  expect((await mails.next({ kind: 'notice' })).to).toBe(stored)
  expect(await host.knex('auth_users').pluck('email')).toEqual([stored])
})
