import { describe, expect, test } from 'vitest'
import { ACTIVATION_WITHHELD, createAuthTables, createKnexStore } from '../../src'
import { addUser } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { faultyStore } from '../support/faulty-store'
import { sendRaw } from '../support/send-raw'
import { type LocalHost, type LocalOptions, mailsTo, newAddress, onLocal, pending, post, settled, signedIn, tokenRows } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

const routes = [
  { path: '/activation/request', field: 'activation_url', purpose: 'ACTIVATION' },
  { path: '/password-reset/request', field: 'reset_url', purpose: 'PASSWORD_RESET' },
] as const

/** One address of each kind; `refusing` is refused by the host below. */
async function everyKind(host: LocalHost) {
  const deactivated = await signedIn(host)
  await host.auth.service.deactivate(deactivated.userId)
  const refusing = await addUser(host.knex, { email: `refusing-${newAddress()}` })
  const refusingPending = await addUser(host.knex, { email: `refusing-${newAddress()}`, isActive: false, activatedAt: null })
  return {
    active: (await signedIn(host)).email,
    pending: (await pending(host)).email,
    deactivated: deactivated.email,
    'refusing, active': refusing.email,
    'refusing, pending': refusingPending.email,
    unknown: newAddress(),
  }
}

const refusesSome = { refusesEmailLink: ({ email }: { email: string }) => email.startsWith('refusing-') }

describe.each(await databases())('requests for a link, on $name', (database) => {
  const { start } = onLocal(database)

  const expected: Record<string, Record<string, { mails: string[]; rows: number }>> = {
    '/activation/request': {
      active: { mails: [], rows: 0 },
      pending: { mails: ['activation', 'activation'], rows: 2 },
      deactivated: { mails: [], rows: 0 },
      'refusing, active': { mails: [], rows: 0 },
      'refusing, pending': { mails: [], rows: 0 },
      unknown: { mails: [], rows: 0 },
    },
    '/password-reset/request': {
      active: { mails: ['password_reset'], rows: 1 },
      pending: { mails: ['activation', 'activation'], rows: 2 },
      deactivated: { mails: [], rows: 0 },
      'refusing, active': { mails: [], rows: 0 },
      'refusing, pending': { mails: [], rows: 0 },
      unknown: { mails: [], rows: 0 },
    },
  }

  test.each(routes)(
    'R-084 $path: one 202 for every kind of address, byte for byte; who gets a mail and a token row',
    async ({ path, field }) => {
      const host = await start({ options: refusesSome })
      const kinds = await everyKind(host)
      const answers: string[] = []
      for (const [kind, email] of Object.entries(kinds)) {
        const headers = { 'Content-Type': 'application/json' }
        const answer = await sendRaw(host.app, { path: `/auth${path}`, headers, body: JSON.stringify({ email }) })
        expect([answer.status, answer.body], kind).toEqual([202, { message: expect.stringContaining('mail'), [field]: null }])
        const { date: _date, ...others } = answer.headers
        answers.push(JSON.stringify([others, answer.text]))
      }
      await settled(host)

      expect(new Set(answers).size, answers.join('\n')).toBe(1)
      for (const [kind, email] of Object.entries(kinds)) {
        const user = await createKnexStore({ knex: host.knex }).users.findByEmail(email)
        const rows = user ? (await tokenRows(host, user.id)).length : 0
        expect({ mails: mailsTo(host, email), rows }, kind).toEqual(expected[path]?.[kind])
      }
    },
  )

  test('R-083 mail goes to the address stored, not to the one in the request', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    await post(host, '/password-reset/request', { email: email.toUpperCase(), to: 'mallory@example.test' })

    expect((await host.mails.next({ kind: 'password_reset' })).to).toBe(email)
    // What a loose collation would take for the same address is another one, and nobody's.
    await post(host, '/password-reset/request', { email: email.replace('local', 'locál') })
    // An outer blank is a slip of the person who typed it (25.7.5).
    await post(host, '/password-reset/request', { email: ` ${email} ` })
    await settled(host)
    expect(mailsTo(host, email)).toEqual(['password_reset', 'password_reset'])
    expect(host.mails.mails).toHaveLength(3) // and the one that `settled` waits for
  })

  test('the service says what happened: the link, withheld, or null', async () => {
    const host = await start({ options: refusesSome })
    const kinds = await everyKind(host)
    const { service } = host.auth
    const link = {
      userId: expect.any(String),
      token: expect.stringMatching(/^[\w-]{43}$/),
      url: expect.any(String),
      expiresAt: expect.any(Date),
    }

    expect(await service.requestActivation(kinds.pending)).toEqual(link)
    expect(await service.requestActivation(kinds['refusing, pending'])).toBe(ACTIVATION_WITHHELD)
    for (const kind of ['active', 'deactivated', 'unknown', 'refusing, active'] as const)
      expect(await service.requestActivation(kinds[kind]), kind).toBeNull()
    expect(await service.requestPasswordReset(kinds.active)).toEqual(link)
    for (const kind of ['pending', 'deactivated', 'unknown', 'refusing, active', 'refusing, pending'] as const)
      expect(await service.requestPasswordReset(kinds[kind]), kind).toBeNull()
  })
})

describe('requests for a link', () => {
  const { start, opened } = onLocal(sqlite)

  test.each(routes)(
    '$path: with links in bodies the field holds the link, and null where there is none',
    async ({ path, field, purpose }) => {
      const host = await start({ links: 'shown' })
      const [active, waiting] = [
        await signedIn(host),
        await addUser(host.knex, { email: newAddress(), isActive: false, activatedAt: null }),
      ]
      const email = purpose === 'ACTIVATION' ? waiting.email : active.email

      expect((await post(host, path, { email })).body[field]).toMatch(/^https:\/\/app\.example\.test\/\w+\/[\w-]{43}$/)
      expect((await post(host, path, { email: newAddress() })).body[field]).toBeNull()
      expect((await post(host, path, { email: purpose === 'ACTIVATION' ? active.email : waiting.email })).body[field]).toBeNull()
    },
  )

  test('AUTH_RETURN_TOKEN_IN_RESPONSE with a mailer: the link is in the body and in the mail', async () => {
    const host = await start({ settings: { returnTokenInResponse: true } })
    const { email } = await signedIn(host)
    const { body } = await post(host, '/password-reset/request', { email })

    expect(body.reset_url).toBe((await host.mails.next({ kind: 'password_reset', to: email })).url)
    const signup = await post(host, '/signup', { email: newAddress(), password: 'a quiet harbour in winter' })
    expect(signup.body.activation_url).toBe((await host.mails.next({ kind: 'activation' })).url)
  })

  /** Counts the verbs of the store that were called before the answer went out. */
  async function watched(options: LocalOptions = {}) {
    const { knex } = opened()
    await createAuthTables(knex)
    const faulty = faultyStore(createKnexStore({ knex }))
    const before: string[][] = []
    const host = await start({
      ...options,
      options: { store: faulty.store, ...options.options },
      before: [
        (_req, res, next) => {
          const from = faulty.calls.length
          const end = res.end.bind(res)
          res.end = ((...given: Parameters<typeof end>) => {
            before.push(faulty.calls.slice(from))
            return end(...given)
          }) as typeof res.end
          next()
        },
      ],
    })
    return { host, before }
  }

  test.each(routes)('R-084 T03 $path: before the answer the database is asked one question, the same for every kind', async ({ path }) => {
    const { host, before } = await watched({ options: refusesSome })
    const kinds = Object.values(await everyKind(host))
    before.length = 0
    for (const email of kinds) await post(host, path, { email })

    expect(before).toEqual(kinds.map(() => ['users.findByEmail']))
    await settled(host)
  })

  test('R-084 a signup with a taken address asks what a new one asks before it differs, and hashes as often', async () => {
    const { host } = await watched()
    const { email } = await signedIn(host)
    const hashesOf = async (address: string) => {
      const before = host.hasher.hashed
      await post(host, '/signup', { email: address, password: 'a quiet harbour in winter' })
      return host.hasher.hashed - before
    }

    expect([await hashesOf(newAddress()), await hashesOf(email)]).toEqual([1, 1])
    await host.mails.next({ kind: 'notice', to: email })
  })

  const slow = {
    never: () => new Promise<void>(() => undefined),
    'five seconds': () => new Promise<void>((done) => setTimeout(done, 5_000).unref()),
  }

  test.each(Object.entries(slow))('R-084 a mailer that takes %s changes no answer', async (_what, send) => {
    const host = await start({ options: { mailer: { send } } })
    const { email } = await signedIn(host)
    const begun = performance.now()

    const answers = [
      await post(host, '/password-reset/request', { email }),
      await post(host, '/signup', { email: newAddress(), password: 'a quiet harbour in winter' }),
      await post(host, '/signup', { email, password: 'a quiet harbour in winter' }),
    ]

    expect(answers.map(({ status }) => status)).toEqual([202, 201, 201])
    expect(performance.now() - begun).toBeLessThan(3_000)
  })

  test('R-084 nor does a hook of the host that fails after the answer', async () => {
    const raise = () => {
      throw new Error('not today')
    }
    const host = await start({ options: { refusesEmailLink: raise } })
    const { email } = await signedIn(host)

    expect((await post(host, '/password-reset/request', { email })).status).toBe(202)
    await expect.poll(() => host.logs.text()).toContain('work after the response failed')
    expect(host.logs.text()).not.toContain(email)
  })
})
