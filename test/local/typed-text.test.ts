import { describe, expect, test } from 'vitest'
import { verifyPassword } from '../../src/passwords/verify-password'
import { ask, confirm, onEmailLogin, person } from '../email-login/people'
import { challengeOf, enrolled, onMfa, outcome, verify } from '../mfa/people'
import { databases } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { logTap } from '../support/log-tap'
import { bearerOf, onLocal, pending, post, resetLink, signedIn, userOf } from './people'

const composed = 'ein grüner Fluß in München, café'.normalize('NFC')
const decomposed = composed.normalize('NFD')
const forms = [
  ['composed', 'decomposed', composed, decomposed],
  ['decomposed', 'composed', decomposed, composed],
] as const

describe.each(await databases())('what people type, on $name', (database) => {
  const { start } = onLocal(database)

  test.each(forms)('a password that was set %s opens the account typed %s', async (_set, _typed, set, typed) => {
    const host = await start()
    const { email, link } = await pending(host, { password: set })
    await post(host, `/activate/${link}`)

    expect((await post(host, '/login', { email, password: typed })).status).toBe(200)
    expect((await post(host, '/login', { email, password: typed.replaceAll(/\p{M}/gu, '') })).status).toBe(typed === composed ? 200 : 401)
  })

  test.each(forms)('a new password that is set %s by a reset or a change opens the account typed %s', async (_set, _typed, set, typed) => {
    const host = await start()
    const { email } = await signedIn(host)
    const token = await resetLink(host, email)
    await post(host, '/password-reset/confirm', { token, new_password: set })
    const login = await post(host, '/login', { email, password: typed })
    expect(login.status).toBe(200)

    const changed = { current_password: typed, new_password: `${set} und weiter` }
    const bearer = bearerOf({ token: login.body.access_token })
    expect((await post(host, '/password-change', changed, bearer)).status).toBe(204)
    expect((await post(host, '/login', { email, password: `${typed} und weiter` })).status).toBe(200)
  })

  test('an imported hash of a decomposed password matches as typed, and the login replaces it, so that it then matches composed', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    await host
      .knex('auth_users')
      .where({ email })
      .update({ hashed_password: await host.hasher.hash(decomposed) })

    expect((await post(host, '/login', { email, password: composed })).status).toBe(401)
    expect((await post(host, '/login', { email, password: decomposed })).status).toBe(200)
    expect((await post(host, '/login', { email, password: composed })).status).toBe(200)
  })

  test('an address loses outer blanks at every route that takes one', async () => {
    const host = await start()
    const { email, link } = await pending(host)
    const blank = (text: string) => ` \u00a0${text}\t\n`
    expect((await post(host, '/activation/request', { email: blank(email) })).status).toBe(202)
    const again = await host.mails.next({ kind: 'activation', to: email })
    expect(again.to).toBe(email)
    await post(host, `/activate/${link}`)
    const member = await signedIn(host)
    const typed = { email: blank(member.email), password: 'a quiet harbour in winter' }

    expect((await post(host, '/login', typed)).status).toBe(200)
    expect((await host.auth.service.logIn(typed)).kind).toBe('session')
    expect((await post(host, '/password-reset/request', { email: typed.email })).status).toBe(202)
    expect((await host.mails.next({ kind: 'password_reset', to: member.email })).to).toBe(member.email)
    const fresh = `new-${member.email}`
    expect((await post(host, '/signup', { email: blank(fresh), password: composed })).status).toBe(201)
    expect((await userOf(host, fresh)).email).toBe(fresh)
    const change = { new_email: blank(`other-${member.email}`), password: typed.password }
    expect((await post(host, '/email-change/request', change, bearerOf(member))).status).toBe(202)
    expect((await host.mails.next({ kind: 'email_change' })).to).toBe(`other-${member.email}`)
  })
})

test('a password costs an unknown account, an unreadable hash and a wrong or right password the same verifications', async () => {
  const calls: string[] = []
  const hasher = fastHasher()
  const right = await hasher.hash(composed)
  const watched = {
    ...hasher,
    unreadable: (hash: string) => (hash === 'nothing' ? ('unknown_format' as const) : null),
    verify: (hash: string, password: string) => {
      calls.push(password)
      return hasher.verify(hash, password)
    },
  }
  const ctx = { hasher: watched, dummyHash: () => hasher.hash('dummy'), logger: logTap() }
  for (const [typed, times] of [
    [decomposed, 2],
    [composed, 1],
  ] as const)
    for (const hash of [null, 'nothing', await hasher.hash('another'), right]) {
      calls.length = 0
      const { matches } = await verifyPassword(ctx, hash, typed)
      expect([matches, calls.length, calls[0]]).toEqual([hash === right, times, composed])
    }
})

describe('a code', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const mfa = onMfa(sqlite)
  const emailLogin = onEmailLogin(sqlite)
  const inDigits = (digits: string) => (code: string) => code.replace(/[0-9]/g, (digit) => [...digits][Number(digit)] ?? '')
  const spellings: [name: string, spell: (code: string) => string][] = [
    ['in Arabic-Indic digits', inDigits('٠١٢٣٤٥٦٧٨٩')],
    ['in Persian digits', inDigits('۰۱۲۳۴۵۶۷۸۹')],
    ['in Devanagari digits', inDigits('०१२३४५६७८९')],
    ['in full-width digits', inDigits('０１２３４５６７８９')],
    ['in bold digits', inDigits('𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗')],
    ['with a zero-width space', (code) => `${code}\u200b`],
    ['between directional marks', (code) => `\u200e\u202a${code}\u202c\u200f`],
    ['behind a byte order mark', (code) => `\ufeff${code}`],
    ['with word joiners and a soft hyphen', (code) => `${code.slice(0, 3)}\u2060\u00ad${code.slice(3)}`],
    ['in groups with an en dash and a thin space', (code) => `${code.slice(0, 3)}\u2009\u2013\u2009${code.slice(3)}`],
  ]

  test.each(spellings)('of an app may be typed %s', async (_name, spell) => {
    const host = await mfa.start()
    const member = await enrolled(host)
    host.clock.advance(90)

    expect(outcome(await verify(host, await challengeOf(host, member), spell(member.app.code())))).toBe(200)
  })

  test.each(spellings)('of a login mail may be typed %s', async (_name, spell) => {
    const host = await emailLogin.start()
    const { email } = await person(host)
    const { requestToken, code, browser } = await ask(host, email)

    expect(outcome(await confirm(host, { request_token: requestToken, code: spell(code) }, browser))).toBe(200)
  })

  test.each(spellings)('for recovery may be typed %s', async (_name, spell) => {
    const host = await mfa.start()
    const member = await enrolled(host)

    expect(outcome(await verify(host, await challengeOf(host, member), spell(member.recoveryCodes[0] ?? '')))).toBe(200)
  })

  test.each(['½23456', '१२३४५', '12345６７', 'Ⅷ23456'])('that is %s stays wrong', async (code) => {
    const host = await mfa.start()
    const member = await enrolled(host)

    expect(outcome(await verify(host, await challengeOf(host, member), code))).toBe('MFA_CODE_INVALID')
  })
})
