import { describe, expect, test } from 'vitest'
import { type Mounted, type SignInOptions, signIn } from '../support/app'
import { databases } from '../support/databases'
import { addUser, rowCounts, userByEmail, userById } from './accounts-at-hand'
import { begin, callBack, newPerson, onDatabase } from './redirect-steps'

/** Without id_token, whose claims have stricter rules of their own: only userinfo speaks. */
const plainOAuth = { scopes: ['profile', 'email'] }

describe.each(await databases())('an account created on $name', (database) => {
  const { start } = onDatabase(database)

  async function created(host: Mounted, options: SignInOptions) {
    const response = await signIn(host, host.browser(), options)
    expect(response.status, response.text).toBe(200)
    return userById(host.knex, response.body.user_id)
  }

  test('is active, has the email and name of the provider, and one identity with what the provider said', async () => {
    const host = await start({ settings: { autoActivate: false } })
    const person = newPerson({ name: 'Ana Souza', picture: 'https://cdn.example.test/ana.png' })

    const user = await created(host, { profile: person })

    const now = host.clock.now()
    expect(user).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      isActive: true,
      createdAt: now,
      updatedAt: now,
      email: person.email,
      hashedPassword: expect.any(String),
      isAdmin: false,
      lastLoginAt: now,
      name: 'Ana Souza',
      totpSecret: null,
      totpEnabledAt: null,
      totpLastStep: null,
      emailVerifiedAt: now,
      activatedAt: now,
      passwordSetAt: null,
    })
    expect(await host.auth.service.listIdentities(user.id)).toEqual([
      {
        id: expect.any(String),
        userId: user.id,
        provider: 'corp',
        subject: person.sub,
        email: person.email,
        emailVerified: true,
        name: 'Ana Souza',
        picture: 'https://cdn.example.test/ana.png',
        createdAt: now,
        lastLoginAt: now,
      },
    ])
  })

  test('R-038: has a proven email only where the provider said true', async () => {
    const host = await start()
    const said: [unknown, boolean | null][] = [
      [true, true],
      ['true', true],
      [false, false],
      ['false', false],
      [null, null],
      [undefined, null],
      [1, null],
      ['yes', null],
      ['TRUE ', null],
      [[true], null],
      [{}, null],
    ]
    for (const [given, stored] of said) {
      const user = await created(host, { profile: newPerson({ email_verified: given }) })
      expect({ given, proven: user.emailVerifiedAt }).toEqual({ given, proven: stored === true ? host.clock.now() : null })
      expect((await host.auth.service.listIdentities(user.id))[0]?.emailVerified).toBe(stored)
    }
  })

  test('R-036: a subject that is a safe integer is its digits; 255 characters are stored whole', async () => {
    const host = await start({ providers: { corp: plainOAuth } })
    for (const [sub, stored] of [
      [Number.MAX_SAFE_INTEGER, '9007199254740991'],
      [0, '0'],
      ['s'.repeat(255), 's'.repeat(255)],
    ] as const) {
      const user = await created(host, { profile: { ...newPerson(), sub } })
      expect((await host.auth.service.listIdentities(user.id))[0]?.subject).toBe(stored)
    }
  })

  test('R-040: a name loses control and direction characters and what is past 200; a picture is https or nothing', async () => {
    const host = await start({ providers: { corp: plainOAuth } })
    const cases: [Record<string, unknown>, { name: string | null; picture: string | null }][] = [
      [{ name: ' \u202eAna\u0000\u001b[31m ' }, { name: 'Ana[31m', picture: null }],
      [{ name: '😀'.repeat(300) }, { name: '😀'.repeat(200), picture: null }],
      [{ name: 'n'.repeat(100_000) }, { name: 'n'.repeat(200), picture: null }],
      [
        { picture: 'javascript:alert(1)', name: 'A' },
        { name: 'A', picture: null },
      ],
      [
        { picture: 'data:image/png;base64,AAAA', name: 'A' },
        { name: 'A', picture: null },
      ],
      [
        { picture: 'http://cdn.example.test/a.png', name: 'A' },
        { name: 'A', picture: null },
      ],
      [
        { picture: `https://cdn.example.test/${'a'.repeat(2048)}`, name: 'A' },
        { name: 'A', picture: null },
      ],
    ]
    for (const [claims, stored] of cases) {
      const user = await created(host, { profile: newPerson(claims) })
      expect(user.name).toBe(stored.name)
      expect((await host.auth.service.listIdentities(user.id))[0]).toMatchObject(stored)
    }
  })

  test('R-042: no provider token and no raw payload is anywhere in the database', async () => {
    const host = await start()
    const user = await created(host, { profile: newPerson({ favourite_colour: 'canary-9d2c' }) })

    const issued = host.provider.requestsTo('userinfo').map(({ headers }) => String(headers.authorization).slice('Bearer '.length))
    const tables = ['auth_users', 'auth_identities', 'auth_user_tokens', 'auth_sessions', 'auth_recovery_codes']
    const dump = JSON.stringify(await Promise.all(tables.map((table) => host.knex(table).select('*'))))
    expect(dump).toContain(user.email)
    expect(issued).toHaveLength(1)
    for (const secret of [...issued, 'refresh-', 'canary-9d2c']) expect(dump).not.toContain(secret)
    expect(dump).not.toMatch(/\beyJ[\w-]+\./) // a JWT; three letters alone may be part of a hash
  })

  describe('without a name from the provider', () => {
    test.each<[string, SignInOptions & { callbackLang?: string }, string]>([
      ['the default', {}, 'You'],
      ['lang=pt-BR at login', { query: { lang: 'pt-BR' } }, 'Você'],
      ['lang=pt at login', { query: { lang: 'pt' } }, 'Você'],
      ['lang at login before Accept-Language', { query: { lang: 'en-US' }, headers: { 'Accept-Language': 'pt-BR' } }, 'You'],
      ['lang at the callback before lang at login', { query: { lang: 'en-US' }, callbackLang: 'pt-BR' }, 'Você'],
      ['Accept-Language', { headers: { 'Accept-Language': 'fr, pt-BR;q=0.9, en;q=0.8' } }, 'Você'],
      ['Accept-Language of neither', { headers: { 'Accept-Language': 'fr' } }, 'You'],
      ['a lang nobody speaks, then Accept-Language', { query: { lang: 'xx' }, headers: { 'Accept-Language': 'pt' } }, 'Você'],
    ])('it is called by a placeholder: %s', async (_case, { query = {}, headers = {}, callbackLang }, name) => {
      const host = await start()
      const person = newPerson({ name: null })
      const attempt = await begin(host, { query, profile: person })
      const lang = callbackLang ? { lang: callbackLang } : {}
      const response = await callBack(host, { ...attempt.query, ...lang }, { cookie: attempt.cookie, headers })
      expect(response.status, response.text).toBe(200)
      expect((await userByEmail(host.knex, person.email))?.name).toBe(name)
    })

    test.each(['', '   ', '\u202e', 7, {}])(
      'a name that shows nothing is none (%j), and the default locale is the setting',
      async (name) => {
        const host = await start({ settings: { defaultLocale: 'pt-BR' } })
        const user = await created(host, { profile: newPerson({ name }) })
        expect(user.name).toBe('Você')
        expect((await host.auth.service.listIdentities(user.id))[0]?.name).toBeNull()
      },
    )
  })

  describe('its email', () => {
    test('is stored lower-cased, in the account and the identity', async () => {
      const host = await start()
      const person = newPerson()
      const user = await created(host, { profile: { ...person, email: person.email.toUpperCase() } })
      expect(user.email).toBe(person.email)
      expect((await host.auth.service.listIdentities(user.id))[0]?.email).toBe(person.email)
    })

    test.each<[string, unknown]>([
      ['two addresses', 'victim@example.test,evil@example.test'],
      ['a full-width at sign', 'victim＠example.test'],
      ['unicode', 'jos\u00e9@example.test'],
      ['a unicode domain', 'ana@ex\u00e4mple.test'],
      ['NUL', 'victim@example.test\u0000'],
      ['a line break', 'victim@example.test\nBcc: evil@example.test'],
      ['a blank before it', ' victim@example.test'],
      ['a blank behind it', 'victim@example.test '],
      ['a display name', 'Victim <victim@example.test>'],
      ['no domain', 'victim'],
      ['one domain segment', 'victim@localhost'],
      ['400 characters', `${'v'.repeat(388)}@example.test`],
      ['an array', ['victim@example.test']],
      ['an object', { email: 'victim@example.test' }],
      ['a number', 7],
      ['the empty string', ''],
    ])('R-039: %s counts as missing: 422 OAUTH_EMAIL_MISSING, and no row', async (_case, email) => {
      const host = await start({ settings: { oauthLinkByVerifiedEmail: true } })
      if (!(await userByEmail(host.knex, 'victim@example.test'))) await addUser(host.knex, { email: 'victim@example.test' })
      const before = await rowCounts(host.knex)

      const response = await signIn(host, host.browser(), { profile: newPerson({ email }) })

      expect([response.status, response.body.code]).toEqual([422, 'OAUTH_EMAIL_MISSING'])
      expect(await rowCounts(host.knex)).toEqual(before)
    })

    test('of 320 characters is taken', async () => {
      const host = await start()
      const email = `${'v'.repeat(64)}@${'d'.repeat(59)}.${'d'.repeat(63)}.${'d'.repeat(63)}.${'d'.repeat(62)}.test`.padStart(320, 'w')
      expect(email).toHaveLength(320)
      const response = await signIn(host, host.browser(), { profile: newPerson({ email }) })
      expect(response.status, response.text).toBe(200)
      expect((await userById(host.knex, response.body.user_id)).email).toBe(email)
    })
  })

  describe('its password', () => {
    test('is unusable, new each time, and costs no hash', async () => {
      const host = await start()
      const [ana, bea] = [await created(host, { profile: newPerson() }), await created(host, { profile: newPerson() })]

      for (const { hashedPassword } of [ana, bea]) expect(hashedPassword).toMatch(/^![A-Za-z0-9_-]{43}$/)
      expect(ana.hashedPassword).not.toBe(bea.hashedPassword)
      expect(host.hasher.hashed).toBe(0)
    })
  })
})
