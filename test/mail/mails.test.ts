import { describe, expect, test } from 'vitest'
import { type AuthMail, createKnexStore, memoryCounters, smtpMailer } from '../../src'
import { addUser } from '../social/accounts-at-hand'
import { link, member } from '../social/link-steps'
import { newPerson } from '../social/redirect-steps'
import { type Mounted, signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'
import { linkTemplates, mailbox, tokenOf } from '../support/mailbox'
import { startSmtpSink } from './smtp-sink'

const password = 'a quiet harbour in winter'
const start = appPerTest()
const unhurried = { links: false, routes: false, signup: false } as const

async function post(host: Mounted, path: string, body: object, token?: string) {
  const request = host.browser().post(`/auth${path}`)
  if (token) request.set('Authorization', `Bearer ${token}`)
  return request.send(body)
}

/** Somebody who signed up and opened the link; `mails` has no unread one. */
async function activated(host: Mounted, mails: ReturnType<typeof mailbox>, signup: object = {}) {
  const { status } = await post(host, '/signup', { email: 'ana@example.test', password, ...signup })
  expect(status).toBe(201)
  return (await post(host, '/activate', { token: tokenOf(await mails.next({ kind: 'activation' })) })).body as { access_token: string }
}

/** Past everything that goes on after an answer. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 2))
}

for (const database of await databases()) {
  describe(`on ${database.name}`, () => {
    const start = appPerTest(database)

    test('R-083 mails go to the stored address, never to one of the request', async () => {
      const mails = mailbox()
      const host = await start({ settings: linkTemplates, options: { mailer: mails } })
      await activated(host, mails)

      for (const email of [
        'ANA@Example.Test',
        'ana@EXAMPLE.test',
        'ana@exämple.test',
        'ana@example.test ',
        'ána@example.test',
        'ana@example.test\u0000',
      ])
        await post(host, '/password-reset/request', { email })
      await post(host, '/signup', { email: 'Ana@example.test', password })
      for (let mail = 1; mail <= 3; mail++) await mails.next({ kind: 'password_reset' })
      await mails.next({ kind: 'notice' })
      await settled()

      expect(mails.mails.map(({ kind, to }) => [kind, to])).toEqual(
        expect.arrayContaining([
          ['activation', 'ana@example.test'],
          ['password_reset', 'ana@example.test'],
          ['notice', 'ana@example.test'],
        ]),
      )
      expect(mails.mails.filter(({ to }) => to !== 'ana@example.test')).toEqual([])
      expect(mails.mails).toHaveLength(5)
    })
  })
}

describe('R-068 the owner is told', () => {
  test('of a new password, by the person and by a link, in the language of the service', async () => {
    const mails = mailbox()
    const host = await start({ settings: { ...linkTemplates, defaultLocale: 'pt-BR' }, options: { mailer: mails } })
    const { access_token: token } = await activated(host, mails)

    await post(host, '/password-change', { current_password: password, new_password: 'another quiet harbour' }, token)
    expect(await mails.next({ kind: 'notice' })).toMatchObject({ to: 'ana@example.test', subject: 'Sua senha foi alterada' })

    await post(host, '/password-reset/request?lang=en', { email: 'ana@example.test' })
    const reset = await mails.next({ kind: 'password_reset' })
    expect(reset).toMatchObject({ locale: 'en-US', subject: 'Choose a new password' })
    await post(host, '/password-reset/confirm', { token: tokenOf(reset), new_password: 'yet another harbour' })
    expect(await mails.next({ kind: 'notice' })).toMatchObject({ to: 'ana@example.test', subject: 'Sua senha foi alterada' })
  })

  test('of a provider that was linked and unlinked, at the address of the account, in the language of the request', async () => {
    const mails = mailbox()
    const host = await start({ settings: linkTemplates, options: { mailer: mails }, providers: { corp: {}, acme: {} } })
    const who = await member(host)

    const linked = await link(host, who, { key: 'acme', profile: newPerson({ email: 'elsewhere@example.test' }) })
    expect(linked.status).toBe(200)
    const mail = await mails.next({ kind: 'notice' })
    expect(mail).toMatchObject({ to: who.email, subject: 'A way to sign in was added to your account' })
    expect(mail.text).toContain('“acme”')

    expect((await link(host, who, { key: 'acme', profile: newPerson() })).status).toBe(409)
    expect((await post(host, '/oauth/accounts/unlink?lang=pt-BR', { provider: 'acme' }, who.token)).status).toBe(204)
    const unlinked = await mails.next({ kind: 'notice' })
    expect(unlinked).toMatchObject({ to: who.email, subject: 'Uma forma de entrar foi removida da sua conta' })
    expect(unlinked.text).toContain('“acme”')

    expect((await post(host, '/oauth/accounts/unlink', { provider: 'acme' }, who.token)).status).toBe(404)
    await settled()
    expect(mails.mails, 'nothing for the new account, nor for what was refused').toHaveLength(2)
  })

  test('24.3: of a provider linked by verified email and of the password that ended with it, in one mail', async () => {
    const mails = mailbox()
    const settings = { ...linkTemplates, oauthLinkByVerifiedEmail: true }
    const host = await start({ settings, options: { mailer: mails }, providers: { corp: {}, acme: {} } })
    const unproven = await addUser(host.knex, { emailVerifiedAt: null, name: 'visit evil.example' })

    const profile = newPerson({ email: unproven.email.toUpperCase() })
    expect((await signIn(host, host.browser(), { profile, query: { lang: 'pt-BR' } })).status).toBe(200)
    const mail = await mails.next()
    expect([mail.to, mail.subject]).toEqual([unproven.email, 'Sua conta foi protegida'])
    const inOrder = ['O provedor de login “corp” foi conectado', 'Por segurança, removemos', 'algum item da lista abaixo', '\n- a senha\n']
    const places = inOrder.map((text) => mail.text.indexOf(text))
    expect(places, 'what was removed stands right below the lines that announce it').toEqual([...places].sort((one, other) => one - other))
    expect(places).not.toContain(-1)
    expect(mail.text).not.toContain('evil')

    expect((await signIn(host, host.browser(), { key: 'acme', profile: newPerson({ email: unproven.email }) })).status).toBe(200)
    await mails.next()
    await settled()
    expect(mails.mails, 'proven meanwhile: the password stays').toHaveLength(2)
  })
})

test('R-085, 24.3: one address gets five links an hour, past it the answer is the same and notices still come; only the newest link works', async () => {
  const mails = mailbox()
  const host = await start({ settings: linkTemplates, options: { mailer: mails, throttle: unhurried } })
  const throttled: object[] = []
  host.auth.events.on('throttled', (payload) => throttled.push(payload))
  const { access_token: token } = await activated(host, mails)

  const answers = []
  for (let request = 0; request < 8; request++) {
    answers.push(await post(host, '/password-reset/request', { email: 'ana@example.test' }))
    await settled()
  }
  await post(host, '/password-change', { current_password: password, new_password: 'another quiet harbour' }, token)
  await settled()

  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  expect(mails.mails.map(({ kind }) => kind)).toEqual(['activation', ...Array(4).fill('password_reset'), 'notice'])
  expect(throttled).toEqual(
    Array(4).fill({ code: 'TOO_MANY_REQUESTS', route: 'mail', keyDigest: expect.any(String), retryAfterSeconds: expect.any(Number) }),
  )
  host.clock.advance(3_601)
  await post(host, '/password-reset/request', { email: 'ana@example.test' })
  await settled()
  const [old, newest] = mails.mails.filter(({ kind }) => kind === 'password_reset').slice(-2) as [AuthMail, AuthMail]
  const confirm = (mail: AuthMail) => post(host, '/password-reset/confirm', { token: tokenOf(mail), new_password: 'yet another harbour' })
  expect([(await confirm(old)).status, (await confirm(newest)).status]).toEqual([401, 200])
})

test('R-089 a name with markup and line breaks reaches no header, no line of its own, and no stranger', async () => {
  const sink = await startSmtpSink()
  const mailer = smtpMailer({ from: 'no-reply@app.example.test', transport: sink.url })
  const host = await start({ settings: linkTemplates, options: { mailer, throttle: unhurried } })
  const name = 'Ana\r\nBcc: eve@example.test\r\n\r\n<script src="https://evil.example">\u202e'
  const delivered = async (count: number) => {
    for (let waited = 0; sink.deliveries.length < count && waited < 500; waited++) await new Promise((resolve) => setTimeout(resolve, 10))
    return sink.deliveries[count - 1]?.email
  }

  await post(host, '/signup', { email: 'ana@example.test', password, name })
  const activation = await delivered(1)
  const token = /activate\/([\w-]{43})/.exec(String(activation?.text))?.[1]
  expect(`${activation?.text}${activation?.html}`.replaceAll(String(token), '')).not.toMatch(/evil|Bcc|Ana/)
  const { access_token } = (await post(host, '/activate', { token })).body
  await post(host, '/password-change', { current_password: password, new_password: 'another quiet harbour' }, access_token)
  const notice = await delivered(2)
  await sink.close()

  expect(notice?.text?.split('\n')[0]).toBe('Hello Ana Bcc: eve@example.test <script src="https://evil.example">,')
  expect(notice?.html).toContain('&lt;script src=&quot;https://evil.example&quot;&gt;')
  expect(notice?.html).not.toContain('<script')
  expect(sink.deliveries.map(({ recipients }) => recipients)).toEqual([['ana@example.test'], ['ana@example.test']])
  for (const { email } of sink.deliveries) expect(email.headers.map(({ key }) => key)).not.toContain('bcc')
})

describe('a template of the host', () => {
  test('is what is sent, and one that fails is replaced by ours', async () => {
    const mails = mailbox()
    const templates = {
      mails: {
        activation: ({ url }: { url: string | null }) => ({ subject: 'Welcome', text: `Go: ${url}`, html: `<a href="${url}">Go</a>` }),
        password_changed: () => {
          throw new Error('a template with a mistake')
        },
      },
    }
    const host = await start({ settings: linkTemplates, options: { mailer: mails, templates } })
    templates.mails.activation = () => ({ subject: 'changed later', text: '', html: '' })
    const { access_token: token } = await activated(host, mails)
    await post(host, '/password-change', { current_password: password, new_password: 'another quiet harbour' }, token)

    expect(mails.mails[0]).toMatchObject({ subject: 'Welcome', text: `Go: ${mails.mails[0]?.url}` })
    expect(await mails.next({ kind: 'notice' })).toMatchObject({ subject: 'Your password was changed' })
    expect(host.logs.entries.filter(({ level }) => level === 'error')).toHaveLength(1)
  })

  test.each([
    [{ mail: {} }, 'templates: unknown option "mail"; the nearest known one is mails.'],
    [{ mails: { pasword_reset: () => null } }, 'templates.mails: unknown option "pasword_reset"; the nearest known one is password_reset.'],
    [
      { mails: { activation: 'x' } },
      'Option templates.mails.activation must be a function of a mail that returns { subject, text, html }.',
    ],
    [{ mails: [] }, 'Option templates.mails must be an object of functions, by topic.'],
    [7, 'Option templates must be an object: { mails, layout, pages }.'],
  ])('%j is refused at boot', async (templates, sentence) => {
    await expect(start({ options: { templates: templates as never } })).rejects.toThrow(sentence)
  })
})

describe('a mailer that', () => {
  const script = async (host: Mounted) => {
    const email = 'ana@example.test'
    await addUser(host.knex, { email: 'bob@example.test', hashedPassword: await host.hasher.hash(password) })
    const bob = await post(host, '/login', { email: 'bob@example.test', password })
    const answers = [
      await post(host, '/signup', { email, password }),
      await post(host, '/signup', { email: 'bob@example.test', password }),
      await post(host, '/activation/request', { email }),
      await post(host, '/password-reset/request', { email: 'bob@example.test' }),
      await post(
        host,
        '/password-change',
        { current_password: password, new_password: 'another quiet harbour' },
        bob.body.access_token as string,
      ),
    ]
    return answers.map(({ status, body }) => [status, { ...body, user_id: typeof body.user_id, signup_token: typeof body.signup_token }])
  }

  test.each<[string, () => Promise<void>]>([
    ['hangs', () => new Promise(() => {})],
    ['rejects', () => Promise.reject(new Error('no'))],
    [
      'throws',
      () => {
        throw new Error('no')
      },
    ],
  ])('%s changes neither status nor body nor time of any request', async (_what, send) => {
    const good = await script(await start({ settings: linkTemplates, options: { mailer: mailbox() } }))
    const began = Date.now()
    const bad = await script(await start({ settings: linkTemplates, options: { mailer: { send } } }))

    expect(bad).toEqual(good)
    expect(good.map(([status]) => status)).toEqual([201, 201, 202, 202, 204])
    expect(Date.now() - began).toBeLessThan(5_000) // it would take a minute, or for ever
  })
})

describe("inside the host's transaction", () => {
  /** Counters as far away as a server's are. */
  const farCounters = () => {
    const near = memoryCounters()
    const away =
      <Args extends unknown[], T>(verb: (...args: Args) => Promise<T>) =>
      async (...args: Args) => {
        await new Promise((resolve) => setTimeout(resolve, 20))
        return verb(...args)
      }
    return { increment: away(near.increment), decrement: away(near.decrement), reset: away(near.reset) }
  }

  test('a notice leaves after the commit, even when its budget is asked for after that; rolled back, there is none', async () => {
    const mails = mailbox()
    const host = await start({ settings: linkTemplates, options: { mailer: mails, throttle: { counters: farCounters() } } })
    const store = createKnexStore({ knex: host.knex })
    const user = await addUser(host.knex)
    const profile = (provider: string) => ({
      ...newPerson(),
      provider,
      subject: provider,
      emailVerified: null,
      name: null,
      picture: null,
      raw: {},
    })
    const linkAs = (provider: string, end: 'commit' | 'rollback') =>
      host.knex
        .transaction(async (trx) => {
          await host.auth.service.using(store.using(trx)).linkIdentity(user.id, profile(provider))
          if (end === 'rollback') throw new Error('rolled back')
          expect(mails.mails).toEqual([])
        })
        .catch((error: Error) => expect(error.message).toBe('rolled back'))

    await linkAs('acme', 'rollback')
    await linkAs('corp', 'commit')

    expect((await mails.next()).text).toContain('“corp”')
    await settled()
    expect(mails.mails).toHaveLength(1)
  })
})
