import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type AuthRouterOptions, type Captcha, type CounterStore, memoryCounters, proofOfWork } from '../../src'
import { type LocalHost, type LocalOptions, newAddress, onLocal, password, pending, post, resetLink, signedIn } from '../local/people'
import { fieldValue, onPages, sendForm } from '../page-routes/people'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)
const pages = onPages(sqlite)

const hour = 3_600
const limited = (attempts: number): NonNullable<AuthRouterOptions['throttle']> => ({
  signupMails: { attempts, windowSeconds: hour },
  routes: false,
  signup: false,
  links: false,
})
const person: Captcha = { verify: async (answer) => answer === 'right', html: () => '<b id="widget"></b>' }
const only = { captcha: person, captchaWhen: () => false }
const byMail = {
  emailLogin: 'both',
  emailLoginSignup: true,
  emailLoginUrlTemplate: 'https://app.example.com/email-login?token={token}',
} as const

interface Told {
  readonly floods: { limit: number }[]
}

async function startLimited(attempts: number, { options, ...more }: LocalOptions = {}): Promise<LocalHost & Told> {
  const host = await start({ ...more, options: { throttle: limited(attempts), ...options }, host: (app) => app.set('trust proxy', true) })
  const floods: { limit: number }[] = []
  host.auth.events.on('signup.flood', (flood) => floods.push(flood))
  return Object.assign(host, { floods })
}

const warnings = ({ logs }: LocalHost) => logs.entries.filter(({ message }) => message.includes('throttle.signupMails'))

async function signUp(host: LocalHost, email = newAddress(), more: object = {}, from = '192.0.2.1'): Promise<number> {
  const { status } = await post(host, '/signup', { email, password, ...more }, { 'X-Forwarded-For': from })
  await host.auth.drain()
  return status
}

describe('the limit on sign-up mails', () => {
  const flood = Array.from({ length: 142 }, (_, index) => ({
    email: `mailbox-${index}@strangers-${index}.example`,
    from: `10.${index % 70}.0.${1 + Math.floor(index / 70)}`,
  }))

  test('31.5.3 of 142 sign-ups through 70 networks, 20 mails go out; ten people who solve the captcha get in', async () => {
    const host = await startLimited(20, { options: only })
    const statuses: number[] = []
    for (const { email, from } of flood) statuses.push(await signUp(host, email, {}, from))
    expect([statuses.filter((status) => status === 201).length, statuses.filter((status) => status === 403).length]).toEqual([20, 122])
    expect(host.mails.mails).toHaveLength(20)

    for (let index = 0; index < 10; index++) {
      const email = newAddress()
      expect(await signUp(host, email, { captcha: 'right' }, `10.${index}.0.9`)).toBe(201)
      const link = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
      expect((await post(host, '/activate', { token: link, password })).status).toBe(200)
    }
    expect([host.floods, warnings(host).length]).toEqual([[{ limit: 20 }], 1])
    expect(warnings(host)[0]).toMatchObject({ level: 'warn', fields: { limit: 20 } })
  })

  test('31.5.2 without a captcha every mail goes out, and the operator is told once', async () => {
    const host = await startLimited(20)
    for (const { email, from } of flood) expect(await signUp(host, email.replace('mailbox', 'open'), {}, from)).toBe(201)
    expect(host.mails.mails).toHaveLength(142)
    expect([host.floods, warnings(host).length]).toEqual([[{ limit: 20 }], 1])
  })

  test('31.5.1 many requests at once send no mail more, over two routers with shared counters', async () => {
    const counters = memoryCounters()
    const throttle = { ...limited(5), counters }
    const hosts = [await start({ options: { ...only, throttle } }), await start({ options: { ...only, throttle } })]
    const sent = await Promise.all(
      Array.from({ length: 40 }, (_, index) => post(hosts[index % 2] as LocalHost, '/signup', { email: newAddress(), password })),
    )
    for (const host of hosts) await host.auth.drain()
    expect(sent.filter(({ status }) => status === 201).length).toBeLessThanOrEqual(5)
    expect(hosts.flatMap(({ mails }) => mails.mails).length).toBeLessThanOrEqual(5)
  })

  test('31.5.2 many unsolved requests at once tell of no flood, because no mail went past the limit', async () => {
    const host = await startLimited(2, { options: only })
    await Promise.all(Array.from({ length: 20 }, () => signUp(host)))
    expect(host.mails.mails.length).toBeLessThanOrEqual(2)
    expect([host.floods, warnings(host)]).toEqual([[], []])
    for (let times = 0; times < 3; times++) expect(await signUp(host, newAddress(), { captcha: 'right' })).toBe(201)
    expect([host.floods, warnings(host).length]).toEqual([[{ limit: 2 }], 1])
  })

  test('31.5.2 a new window tells again', async () => {
    const host = await startLimited(1)
    for (let times = 0; times < 3; times++) await signUp(host)
    host.clock.advance(hour)
    for (let times = 0; times < 3; times++) await signUp(host)
    expect([host.floods.length, warnings(host).length]).toEqual([2, 2])
  })
})

describe('what counts', () => {
  /** How many sign-ups still pass without a captcha. */
  async function left(host: LocalHost): Promise<number> {
    for (let passed = 0; ; passed++) if ((await signUp(host)) !== 201) return passed
  }
  const request = async (host: LocalHost, path: string, email: string) => {
    expect((await post(host, path, { email })).status).toBe(202)
    await host.auth.drain()
  }
  const startAt = (settings = {}) => startLimited(3, { settings: { ...byMail, ...settings }, options: only })

  test.each<[string, number, (host: LocalHost) => Promise<unknown>]>([
    ['a sign-up', 2, (host) => signUp(host)],
    ['a second sign-up with that address', 1, async (host) => signUp(host, (await pending(host)).email)],
    ['another activation mail', 1, async (host) => request(host, '/activation/request', (await pending(host)).email)],
    [
      'a reset of a pending account, which mails an activation',
      1,
      async (host) => request(host, '/password-reset/request', (await pending(host)).email),
    ],
    ['a login by email for a new address', 2, (host) => request(host, '/email-login/request', newAddress())],
    ['a login by email of a verified account', 3, async (host) => request(host, '/email-login/request', (await verified(host)).email)],
    ['a reset of a verified account', 3, async (host) => resetLink(host, (await verified(host)).email)],
    ['a sign-up with the address of a verified account', 3, async (host) => signUp(host, (await verified(host)).email)],
    ['a request that mails nobody', 3, (host) => request(host, '/activation/request', newAddress())],
    ['a refused body', 3, (host) => signUp(host, newAddress(), { password: 'short' })],
    ['an activated sign-up', 3, async (host) => activated(host)],
    ['a login by email that made the account', 3, async (host) => enteredByMail(host)],
    ['a verification mail that a person asks for with a session', 3, async (host) => verificationOf(host)],
  ])('31.5.1 %s leaves %i of 3', async (_what, rest, cause) => {
    const host = await startAt()
    await cause(host)
    await host.auth.drain()
    expect(await left(host)).toBe(rest)
  })

  test('31.5.1 the notice that there is no account counts; one that its own limit stops does not', async () => {
    const host = await startAt({ emailLoginSignup: false })
    const email = newAddress()
    await request(host, '/email-login/request', email)
    await request(host, '/email-login/request', email)
    expect(host.mails.mails).toHaveLength(1)
    expect(await left(host)).toBe(2)
  })

  test.each([['notice', 'notice']] as const)(
    '31.5.1 with unknownDevice %s, a mail of kind %s counts for an address that is not verified',
    async (unknownDevice, kind) => {
      const host = await startLimited(1, { settings: { tokenDelivery: 'cookie', unknownDevice } })
      const login = async ({ email }: { email: string }) => {
        expect((await post(host, '/login', { email, password })).status).toBe(200)
        await host.auth.drain()
      }
      const verified = await signedIn(host, { emailVerifiedAt: host.clock.now() })
      const mailsTo = ({ email }: { email: string }) => host.mails.mails.filter((mail) => mail.to === email && mail.kind === kind).length
      for (let times = 0; times < 4; times++) await login(verified)
      expect([mailsTo(verified), host.floods]).toEqual([expect.any(Number), []])
      expect(mailsTo(verified)).toBeGreaterThan(1)
      const unverified = await signedIn(host, { emailVerifiedAt: null })
      for (let times = 0; times < 4; times++) await login(unverified)
      expect(mailsTo(unverified)).toBeGreaterThan(1)
      expect(host.floods).toEqual([{ limit: 1 }])
    },
  )

  test('31.5.1 a verification after the window gives nothing back', async () => {
    const host = await startAt()
    const { link } = await pending(host)
    host.clock.advance(hour)
    await signUp(host)
    expect((await post(host, '/activate', { token: link, password })).status).toBe(200)
    expect(await left(host)).toBe(2)
  })

  test('31.5.1 a mail of the last window that is verified in this one gives nothing back', async () => {
    const host = await startAt()
    host.clock.advance(hour - 60)
    const { link } = await pending(host)
    host.clock.advance(120)
    await signUp(host)
    expect((await post(host, '/activate', { token: link, password })).status).toBe(200)
    expect(await left(host)).toBe(2)
  })

  test('31.5.1 a request that ends without a mail in the next window gives nothing back there', async () => {
    const captchaWhen: AuthRouterOptions['captchaWhen'] = async (req) => {
      if (req.headers['x-forwarded-for'] !== '192.0.2.99') return false
      host.clock.advance(hour)
      await signUp(host)
      return true
    }
    const host: LocalHost = await startLimited(3, { options: { ...only, captchaWhen } })
    expect(await signUp(host, newAddress(), {}, '192.0.2.99')).toBe(403)
    expect(await left(host)).toBe(2)
  })

  test('31.5.1 false counts nothing', async () => {
    const host = await startLimited(1, { options: { ...only, throttle: { ...limited(1), signupMails: false } } })
    for (let times = 0; times < 5; times++) expect(await signUp(host)).toBe(201)
    expect([host.mails.mails.length, host.floods]).toEqual([5, []])
  })

  async function verified(host: LocalHost): Promise<{ email: string }> {
    return signedIn(host, { emailVerifiedAt: host.clock.now() })
  }

  async function activated(host: LocalHost): Promise<void> {
    const { link } = await pending(host)
    expect((await post(host, '/activate', { token: link, password })).status).toBe(200)
  }

  async function enteredByMail(host: LocalHost): Promise<void> {
    const email = newAddress()
    const { body } = await post(host, '/email-login/request', { email })
    const { code } = await host.mails.next({ kind: 'email_login', to: email })
    expect((await post(host, '/email-login/confirm', { code, request_token: body.request_token })).status).toBe(200)
  }

  async function verificationOf(host: LocalHost): Promise<void> {
    const { token, email } = await signedIn(host, { emailVerifiedAt: null })
    expect((await post(host, '/email-verify/request', {}, { Authorization: `Bearer ${token}` })).status).toBe(202)
    await host.mails.next({ kind: 'email_verification', to: email })
  }
})

describe('past the limit', () => {
  const routes = ['/signup', '/activation/request', '/email-login/request']

  test('31.5.3 the routes that mail strangers need a passed captcha, for every address', async () => {
    const host = await startLimited(1, { settings: byMail, options: only })
    const owner = await signedIn(host, { emailVerifiedAt: host.clock.now() })
    await signUp(host)
    for (const path of routes)
      for (const email of [newAddress(), owner.email]) {
        for (const captcha of [undefined, 'wrong'])
          expect((await post(host, path, { email, password, captcha })).body).toMatchObject({ code: 'CAPTCHA_REQUIRED', details: {} })
        expect((await post(host, path, { email, password, captcha: 'right' })).status).toBeLessThan(300)
      }
    // The way back into an account stays open.
    expect((await post(host, '/password-reset/request', { email: owner.email })).status).toBe(202)
  })

  test('31.5.3 failOpen does not count: a verifier that is held up sends no mail', async () => {
    const captcha: Captcha = { verify: () => Promise.reject(new Error('down')), failOpen: true }
    const host = await startLimited(1, { settings: byMail, options: { captcha } })
    expect(await signUp(host, newAddress(), { captcha: 'any' })).toBe(201)
    for (const path of routes) expect((await post(host, path, { email: newAddress(), password, captcha: 'any' })).status).toBe(503)
    await host.auth.drain()
    expect(host.mails.mails).toHaveLength(1)
  })

  test('31.5.3 a known device of the account passes, and another account’s does not', async () => {
    const host = await startLimited(1, { settings: { ...byMail, tokenDelivery: 'cookie' }, options: only })
    await signUp(host)
    const browser = host.browser()
    const [owner, other] = [(await signedIn(host)).email, (await signedIn(host)).email]
    expect((await browser.post('/auth/login').send({ email: owner, password })).status).toBe(200)
    for (const path of routes) {
      expect((await browser.post(`/auth${path}`).send({ email: owner, password })).status).toBeLessThan(300)
      expect((await browser.post(`/auth${path}`).send({ email: other, password })).status).toBe(403)
    }
  })

  test('31.5.3 our pages show the widget then, also where captchaWhen says no', async () => {
    const host = await pages.start({ options: { ...only, throttle: limited(1) } })
    const browser = host.browser()
    expect((await browser.get('/auth/signup')).text).not.toContain('id="widget"')
    await sendForm(browser, '/auth/signup', { email: newAddress(), password })
    await host.auth.drain()
    expect((await browser.get('/auth/signup')).text).toContain('id="widget"')
    const email = newAddress()
    const refused = await sendForm(browser, '/auth/signup', { email, password })
    expect([refused.status, refused.text.includes('id="widget"'), fieldValue(refused.text, 'email')]).toEqual([400, true, email])
    expect((await sendForm(browser, '/auth/signup', { email, password, captcha: 'right' })).status).toBe(303)
  })
})

test('31.5.3 a page only reads: it counts nothing, and another process shows the widget at the latest with the refusal', async () => {
  const counted: string[] = []
  const counters = memoryCounters()
  const increment: CounterStore['increment'] = (...given) => {
    counted.push(given[0])
    return counters.increment(...given)
  }
  const options = { ...only, throttle: { ...limited(1), counters: { ...counters, increment } } }
  const [one, other] = [await pages.start({ options }), await pages.start({ options })]
  const shows = async (host: LocalHost) => (await host.browser().get('/auth/signup')).text.includes('id="widget"')
  expect([await shows(one), counted]).toEqual([false, []])
  await sendForm(one.browser(), '/auth/signup', { email: newAddress(), password })
  await one.auth.drain()
  counted.length = 0
  expect([await shows(one), counted]).toEqual([true, []])
  const refused = await sendForm(other.browser(), '/auth/signup', { email: newAddress(), password })
  expect([refused.status, refused.text.includes('id="widget"'), await shows(other)]).toEqual([400, true, true])
  other.clock.advance(hour)
  expect(await shows(other)).toBe(false)
})

test('the costs: one counter a request that can mail a stranger, none for a captcha, and one for a solved puzzle', async () => {
  const counters = memoryCounters()
  let count = 0
  const increment: CounterStore['increment'] = (...given) => {
    count += 1
    return counters.increment(...given)
  }
  const counting: CounterStore = { ...counters, increment }
  const countersOf = async (options: LocalOptions['options'], captcha?: (host: LocalHost) => Promise<string>) => {
    const host = await start({ options: { throttle: { ...limited(5), mail: false, counters: counting }, ...options } })
    const answer = await captcha?.(host)
    count = 0
    expect(await signUp(host, newAddress(), { captcha: answer })).toBe(201)
    return count
  }
  const solve = async (host: LocalHost) => {
    const { puzzle } = (await host.browser().get('/auth/captcha?action=signup')).body
    for (let n = 0; ; n++) if (createHash('sha256').update(`${puzzle}.${n}`).digest()[0] === 0) return `${puzzle}.${n}`
  }
  const uncounted = await countersOf({ throttle: { ...limited(5), signupMails: false, mail: false, counters: counting } })
  const alone = await countersOf({})
  expect(alone - uncounted).toBe(1)
  expect(await countersOf({ captcha: person }, async () => 'right')).toBe(alone)
  expect(await countersOf({ captcha: proofOfWork({ bits: 8 }) }, solve)).toBe(alone + 1)
})

test('31.5.1 boot refuses a limit that is none', async () => {
  await expect(start({ options: { throttle: { signupMails: { attempts: 0, windowSeconds: 60 } } } })).rejects.toThrow(
    /throttle\.signupMails/,
  )
})
