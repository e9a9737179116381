import { describe, expect, test } from 'vitest'
import { ACTIVATION_WITHHELD, errors } from '../../src'
import { databases } from '../support/databases'
import { sendRaw } from '../support/send-raw'
import {
  amrOf,
  isAlive,
  type LocalHost,
  mailsTo,
  newAddress,
  onLocal,
  otherPassword,
  password,
  post,
  settled,
  signedIn,
  userOf,
} from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** What every answer has a value of its own for. */
const random = { user_id: '', signup_token: '' }

describe.each(await databases())('signup with a taken address, on $name', (database) => {
  const { start } = onLocal(database)

  const owners: [what: string, make: (host: LocalHost) => Promise<{ email: string }>][] = [
    ['an active account', (host) => signedIn(host)],
    [
      'a deactivated one',
      async (host) => {
        const owner = await signedIn(host)
        await host.auth.service.deactivate(owner.userId)
        return owner
      },
    ],
  ]

  test.each(owners)(
    'S16 %s: the same 201 pending shape with a made-up user_id, its owner gets a mail, and nothing changes',
    async (_what, make) => {
      const host = await start()
      const { email } = await make(host)
      const before = await userOf(host, email)
      const given = { password: otherPassword, name: 'Mallory' }

      const fresh = await post(host, '/signup', { email: newAddress(), ...given })
      const taken = await post(host, '/signup', { email, ...given })
      const again = await post(host, '/signup', { email, ...given })

      expect([taken.status, { ...taken.body, ...random }]).toEqual([fresh.status, { ...fresh.body, ...random }])
      const headersOf = ({ headers: { date: _date, 'set-cookie': cookies, ...others } }: typeof taken) => ({
        ...others,
        cookies: String(cookies)
          .replace(/=[\w.-]+;/, '=;')
          .replace(/Expires=[^;]+/, ''),
      })
      expect(headersOf(taken)).toEqual(headersOf(fresh))
      for (const { body } of [fresh, taken, again]) expect(body.user_id).toMatch(uuid)
      expect(new Set([taken.body.user_id, again.body.user_id, before.id]).size).toBe(3)
      const notice = await host.mails.next({ kind: 'notice', to: email })
      expect([notice.url, notice.text]).toEqual([null, expect.stringContaining('there is already one')])
      expect(notice.text).not.toContain('Mallory')
      expect(await userOf(host, email)).toEqual(before)
    },
  )

  test.each([{ autoActivate: true }, { revealTakenEmail: true }])(
    'with %j it is 409 EMAIL_TAKEN, and nobody gets a mail',
    async (settings) => {
      const host = await start({ settings })
      const { email } = await signedIn(host)
      const before = await userOf(host, email)

      const { status, body } = await post(host, '/signup', { email: email.toUpperCase(), password })

      expect([status, body]).toEqual([409, { detail: expect.any(String), code: 'EMAIL_TAKEN', details: {} }])
      await settled(host)
      expect([await userOf(host, email), mailsTo(host, email)]).toEqual([before, []])
    },
  )
})

describe('signup', () => {
  const { start } = onLocal(sqlite)
  const rule = (path: string, name: unknown = expect.any(String)) => ({ errors: [{ path, rule: name }] })

  test('name is an optional display name; the email is lowercased before insert; the password is never plaintext', async () => {
    const host = await start()
    const names: [given: object, stored: string | null][] = [
      [{}, null],
      [{ name: null }, null],
      [{ name: '' }, null],
      [{ name: 'Ana ' }, 'Ana '],
      [{ name: 'é'.repeat(120) }, 'é'.repeat(120)],
    ]
    for (const [given, stored] of names) {
      const email = newAddress()
      expect((await post(host, '/signup', { email: email.toUpperCase(), password, ...given })).status).toBe(201)
      const user = await userOf(host, email)
      expect([user.name, user.isAdmin, user.totpSecret, user.passwordSetAt]).toEqual([stored, false, null, host.clock.now()])
      expect(user.hashedPassword).not.toContain(password)
    }
  })

  test.each<[what: string, body: object, details: object]>([
    ['no email', { password }, rule('email', 'any.required')],
    ['no password', { email: 'ana@example.test' }, rule('password', 'any.required')],
    ['a password that is a number', { email: 'ana@example.test', password: 123456789012 }, rule('password', 'string.base')],
    ['a password in an array', { email: 'ana@example.test', password: [password] }, rule('password', 'string.base')],
    ['a name of 121 characters', { email: 'ana@example.test', password, name: 'a'.repeat(121) }, rule('name', 'string.max')],
    ['a name with NUL', { email: 'ana@example.test', password, name: 'a\0' }, rule('name')],
    ['a name that is an object', { email: 'ana@example.test', password, name: {} }, rule('name', 'string.base')],
    [
      'an empty password',
      { email: 'ana@example.test', password: '' },
      { rule: 'too_short', min: 12, message: 'Please choose a password of at least 12 characters.' },
    ],
    [
      'eleven characters',
      { email: 'ana@example.test', password: 'elevenchars' },
      { rule: 'too_short', min: 12, message: 'Please choose a password of at least 12 characters.' },
    ],
    [
      '1025 bytes',
      { email: 'ana@example.test', password: 'qä'.repeat(341).concat('rs') },
      { rule: 'too_long', max: 1024, message: 'This password is too long.' },
    ],
    [
      'a common one',
      { email: 'ana@example.test', password: 'password123456' },
      { rule: 'too_common', message: 'This password is easy to guess. Please choose another one.' },
    ],
    [
      'the address itself',
      { email: 'ana-maria@example.test', password: 'ana-maria@example.test' },
      { rule: 'too_common', message: 'This password is easy to guess. Please choose another one.' },
    ],
    [
      'the name',
      { email: 'ana@example.test', password: 'Mariana Lisboa 1', name: 'Mariana Lisboa' },
      { rule: 'too_common', message: 'This password is easy to guess. Please choose another one.' },
    ],
  ])('422 VALIDATION_ERROR, with the rule and never the value, before any hashing: %s', async (_what, body, details) => {
    const host = await start()
    const answer = await post(host, '/signup', body)

    expect([answer.status, answer.body]).toEqual([422, { detail: expect.any(String), code: 'VALIDATION_ERROR', details }])
    for (const value of Object.values(body)) if (typeof value === 'string' && value !== '') expect(answer.text).not.toContain(value)
    expect(host.hasher.hashed).toBe(0)
  })

  test('a refused password is explained in the language of the request, as the pages explain it', async () => {
    const host = await start({
      options: { passwordPolicy: { check: async (given) => (given.startsWith('leaked') ? 'breached' : 'house_rule') } },
    })
    const messageOf = async (given: string, language: string) =>
      (await post(host, '/signup', { email: newAddress(), password: given }, { 'Accept-Language': language })).body.details.message

    expect(await messageOf('short', 'pt-BR')).toBe('Escolha uma senha com pelo menos 12 caracteres.')
    expect(await messageOf('short', 'en')).toBe('Please choose a password of at least 12 characters.')
    expect(await messageOf('leaked in a breach', 'pt')).toBe(
      'Esta senha apareceu em um vazamento de dados de outro serviço. Escolha outra.',
    )
    expect(await messageOf('a rule of the host refuses this', 'pt')).toBe('Esta senha não pode ser usada. Escolha outra.')
  })

  test('AUTH_PASSWORD_MIN_LENGTH, AUTH_PASSWORD_MAX_BYTES and AUTH_PASSWORD_REQUIRE_COMPLEXITY hold at signup, reset and change', async () => {
    const host = await start({ settings: { passwordMinLength: 8, passwordMaxBytes: 64, passwordRequireComplexity: true } })
    const good = 'Qz8!vR2n'
    const ruleOf = async (given: string) => (await post(host, '/signup', { email: newAddress(), password: given })).body.details?.rule

    expect(await Promise.all(['Qz8!vR2', 'qz8!vr2n', `${good}${'x'.repeat(57)}`, good].map(ruleOf))).toEqual([
      'too_short',
      'missing_classes',
      'too_long',
      undefined,
    ])
    const { email, token } = await signedIn(host)
    const headers = { Authorization: `Bearer ${token}` }
    const change = await post(host, '/password-change', { current_password: password, new_password: 'qz8!vr2n' }, headers)
    expect([change.status, change.body.details]).toMatchObject([422, { rule: 'missing_classes', missing: ['upper'] }])
    await post(host, '/password-reset/request', { email })
    const link = new URL(String((await host.mails.next({ kind: 'password_reset', to: email })).url)).pathname.split('/').at(-1)
    const reset = await post(host, '/password-reset/confirm', { token: link, new_password: 'qz8!vr2n' })
    expect([reset.status, reset.body.details.rule]).toEqual([422, 'missing_classes'])
  })

  test('AUTH_SIGNUP_ENABLED false: the path is the host’s, with any method; what else there is stays', async () => {
    const host = await start({ settings: { signupEnabled: false, tokenDelivery: 'both' } })
    for (const path of ['/signup', '/cookie/signup']) {
      for (const method of ['POST', 'GET']) {
        const answer = await sendRaw(host.app, { method, path: `/auth${path}` })
        expect([answer.status, answer.text.includes('Cannot '), answer.headers['cache-control']]).toEqual([404, true, undefined])
      }
    }
    const { email } = await signedIn(host)
    expect((await post(host, '/login', { email, password })).status).toBe(200)
    expect((await post(host, '/password-reset/request', { email })).status).toBe(202)
    expect((await host.auth.service.signUp({ email: newAddress(), password }))[0].isActive).toBe(false)
  })

  test('the service: a link, ACTIVATION_WITHHELD, or null for an account born active; a taken address is an error', async () => {
    const host = await start()
    const told: object[] = []
    host.auth.events.on('signup', (payload) => told.push(payload))
    const email = newAddress()
    const [user, link] = await host.auth.service.signUp({ email, password, name: 'Ana' })

    expect(link).toEqual({
      userId: user.id,
      token: expect.stringMatching(/^[\w-]{43}$/),
      url: expect.any(String),
      expiresAt: expect.any(Date),
    })
    expect((await host.mails.next({ kind: 'activation', to: email })).url).toBe(Object(link).url)
    expect(told).toEqual([{ userId: user.id, by: 'pwd' }])
    await expect(host.auth.service.signUp({ email, password })).rejects.toThrow(errors.EmailTakenError)
    await expect(host.auth.service.signUp({ email: 'nobody', password })).rejects.toThrow(errors.ValidationError)
    const strict = await start({ options: { refusesEmailLink: () => true } })
    const [withheld, marker] = await strict.auth.service.signUp({ email: newAddress(), password })
    expect([withheld.isActive, marker]).toEqual([false, ACTIVATION_WITHHELD])
    const born = await start({ settings: { autoActivate: true } })
    const [active, none] = await born.auth.service.signUp({ email: newAddress(), password })
    expect([active.isActive, none]).toEqual([true, null])
  })

  test('a born-active pair is a session like any other, for whoever signs up beside others', async () => {
    const host = await start({ settings: { autoActivate: true } })
    const [ana, bob] = [
      await post(host, '/signup', { email: newAddress(), password }),
      await post(host, '/signup', { email: newAddress(), password }),
    ]

    expect(ana.body.user_id).not.toBe(bob.body.user_id)
    for (const { body } of [ana, bob]) {
      expect(amrOf(body.access_token)).toEqual(['pwd'])
      expect(await isAlive(host, body.refresh_token)).toBe(true)
    }
  })
})
