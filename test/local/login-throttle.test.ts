import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { ServiceUnavailableError } from '../../src/core/errors'
import { memoryCounters } from '../../src/rate-limits/memory-counters'
import type { SubjectBudgetsInput } from '../../src/rate-limits/rate-limit'
import { databases } from '../support/databases'
import { faultyStore } from '../support/faulty-store'
import { client, countingHasher, inTurn, type ManyClients, manyClients, password, statuses, times, wrongPassword } from './many-clients'

const open = manyClients()
const fivePer900 = { attempts: 5, windowSeconds: 900 }

/** Five each, so that a test need not send a hundred. */
const start: typeof open = (given = {}) => {
  const login = { pair: fivePer900, email: fivePer900, client: fivePer900 }
  return open({ ...given, options: { ...given.options, throttle: { login, ...given.options?.throttle } } })
}
const ana = 'ana@example.test'
const bob = 'bob@example.test'

const five = [401, 401, 401, 401, 401]

/** Wrong passwords for one address, each from a client of its own. */
async function guess(host: ManyClients, email: string, count: number, firstClient = 0): Promise<number[]> {
  return statuses(await inTurn(count, (index) => host.logIn(email, wrongPassword, client(firstClient + index))))
}

/** Wrong passwords of one client, each for an address nobody has. */
async function failFrom(host: ManyClients, from: string, count: number): Promise<number[]> {
  return statuses(await inTurn(count, (index) => host.logIn(`nobody-${index}@example.test`, wrongPassword, from)))
}

describe('failed logins of an address', () => {
  test('R-135: the sixth within 900 seconds is 429 LOGIN_THROTTLED, even with the right password; after the window all is fresh', async () => {
    const host = await start()
    await host.signUp(ana)
    expect(await guess(host, ana, 5)).toEqual(five)
    host.clock.advance(17)

    const refused = await host.logIn('ANA@Example.test', password, client(9))
    expect(refused.status).toBe(429)
    expect(refused.body).toEqual({ detail: expect.any(String), code: 'LOGIN_THROTTLED', details: { retry_after_seconds: 883 } })
    expect(refused.headers['retry-after']).toBe('883')
    host.clock.advance(882.5)
    expect((await host.logIn(ana, password, client(9))).headers['retry-after']).toBe('1')
    host.clock.advance(0.5)
    expect(await guess(host, ana, 4)).toEqual([401, 401, 401, 401])
    expect((await host.logIn(ana, password)).status).toBe(200)
  })

  test('R-132: one that nobody has is refused like any other, answer by answer', async () => {
    const host = await start()
    await host.signUp(ana)
    const seen = await Promise.all(
      [ana, 'nobody@example.test'].map((email) => inTurn(7, (index) => host.logIn(email, wrongPassword, client(index)))),
    )
    const [known, unknown] = seen.map((responses) =>
      responses.map(({ status, text, headers }) => ({ status, text, headers: { ...headers, date: null, 'x-request-id': null } })),
    )
    expect(known?.map(({ status }) => status)).toEqual([...five, 429, 429])
    expect(unknown).toEqual(known)
  })

  test.each([20, 100])('R-130, C11: of %i at once five passwords are looked at, and nobody else is', async (burst) => {
    const host = await start()
    await host.signUp(ana)
    for (const email of [ana, 'nobody@example.test']) {
      host.hasher.verified = 0
      const answers = statuses(await times(burst, (index) => host.logIn(email, wrongPassword, client(index + (email === ana ? 0 : burst)))))
      expect(answers.filter((status) => status === 401)).toHaveLength(5)
      // At most 20 wait for those in flight; the others hear that the server is busy.
      expect(answers.filter((status) => status === 429 || status === 503)).toHaveLength(burst - 5)
      expect(host.hasher.verified).toBe(5)
    }
  })

  test('R-131: a login clears them, and of its client’s gives back its own unit, no more', async () => {
    const host = await start()
    await host.signUp(ana)
    expect(statuses(await inTurn(4, () => host.logIn(ana, wrongPassword, client(0))))).toEqual([401, 401, 401, 401])
    expect((await host.logIn(ana, password, client(0))).status).toBe(200)
    expect(await guess(host, ana, 6, 1)).toEqual([...five, 429])
    expect(await failFrom(host, client(0), 2)).toEqual([401, 429])
  })

  test('R-131: who alternates logins of their own with guesses gains nothing', async () => {
    const host = await start()
    for (const email of [ana, 'mallory@example.test']) await host.signUp(email)
    const guesses = await inTurn(10, async () => {
      const { status } = await host.logIn(ana, wrongPassword, client(0))
      await host.logIn('mallory@example.test', password, client(0))
      return status
    })
    expect(guesses).toEqual([...five, 429, 429, 429, 429, 429])
    expect((await host.logIn('mallory@example.test', password, client(0))).status).toBe(429)
    // Nor from many clients: the address keeps its own count.
    expect((await host.logIn(ana, wrongPassword, client(1))).status).toBe(429)
  })

  test('R-134: a flood of other addresses does not make it forgotten', async () => {
    const host = await start({ options: { throttle: { counters: memoryCounters({ maxKeys: 20 }) } } })
    await host.signUp(ana)
    expect(await guess(host, ana, 5)).toEqual(five)
    await inTurn(60, (index) => host.logIn(`nobody-${index}@example.test`, wrongPassword, client(100 + index)))
    expect((await host.logIn(ana, password, client(9))).status).toBe(429)
  })

  test('a call without HTTP counts the address, and the client when it is given', async () => {
    const host = await start()
    const { service } = host.auth
    const attempt = (email: string, client?: string) =>
      service.logIn({ email, password: wrongPassword, client }).then(null, ({ code }: { code: string }) => code)
    expect(await inTurn(6, () => attempt(ana))).toEqual([...five.map(() => 'UNAUTHORIZED'), 'LOGIN_THROTTLED'])
    expect((await host.logIn(ana, wrongPassword)).status).toBe(429)
    const codes = await inTurn(6, (index) => attempt(`nobody-${index}@example.test`, 'job 7'))
    expect(codes).toEqual([...five.map(() => 'UNAUTHORIZED'), 'LOGIN_THROTTLED'])
  })
})

describe('failed logins of a client', () => {
  test('the sixth within 900 seconds is 429, whatever addresses it names; other clients are served', async () => {
    const host = await start()
    await host.signUp(ana)
    expect(await failFrom(host, client(0), 6)).toEqual([...five, 429])
    expect((await host.logIn(ana, password, client(0))).status).toBe(429)
    expect((await host.logIn(ana, password, client(1))).status).toBe(200)
    host.clock.advance(900)
    expect(await failFrom(host, client(0), 6)).toEqual([...five, 429])
  })

  test('R-130: of a hundred at once, each for another address, five passwords are looked at', async () => {
    const host = await start()
    const answers = statuses(await times(100, (index) => host.logIn(`nobody-${index}@example.test`, wrongPassword, client(0))))
    expect(answers.filter((status) => status === 401)).toHaveLength(5)
    expect(host.hasher.verified).toBe(5)
  })

  test('whoever is refused as a client costs the address nothing, and the other way round', async () => {
    const host = await start()
    await host.signUp(ana)
    await failFrom(host, client(0), 5)
    expect(statuses(await inTurn(8, () => host.logIn(ana, wrongPassword, client(0))))).toEqual(Array(8).fill(429))
    expect(await guess(host, ana, 5, 1)).toEqual(five)
    expect(statuses(await inTurn(8, () => host.logIn(ana, wrongPassword, client(50))))).toEqual(Array(8).fill(429))
    expect(await failFrom(host, client(50), 5)).toEqual(five)
  })

  test('R-133: without a trusted proxy X-Forwarded-For is nobody', async () => {
    const host = await start({ trustsProxy: false })
    const answers = await inTurn(6, (index) => host.logIn(`nobody-${index}@example.test`, wrongPassword, client(index)))
    expect(statuses(answers)).toEqual([...five, 429])
  })

  test.each([
    ['an IPv6 client is its /64', (index: number) => `2001:db8:0:1:${index}::${index}`, '2001:db8:0:2::1'],
    [
      'an IPv4 client is itself, mapped into IPv6 or not',
      (index: number) => ['192.0.2.7', '::ffff:192.0.2.7', '::ffff:c000:207'][index % 3] ?? '',
      '192.0.2.8',
    ],
  ])('R-133: %s', async (_what, address, neighbour) => {
    const host = await start()
    const answers = await inTurn(6, (index) => host.logIn(`nobody-${index}@example.test`, wrongPassword, address(index)))
    expect(statuses(answers)).toEqual([...five, 429])
    expect((await host.logIn('nobody@example.test', wrongPassword, neighbour)).status).toBe(401)
  })

  test('24.7: the clients of one IPv6 /48 have ten times the budget of one, and a right login gives its unit back', async () => {
    const host = await start()
    await host.signUp(ana)
    const from = (network: number) => `2001:db8:7:${network.toString(16)}::1`
    const wrong = (index: number) => host.logIn(`nobody-${index}@example.test`, wrongPassword, from(index))
    expect(statuses(await inTurn(49, wrong))).toEqual(Array(49).fill(401))
    for (let time = 0; time < 3; time += 1) expect((await host.logIn(ana, password, from(100 + time))).status).toBe(200)
    expect(statuses(await inTurn(2, (index) => wrong(200 + index)))).toEqual([401, 429])
    expect((await host.logIn('nobody@example.test', wrongPassword, '2001:db8:8::1')).status).toBe(401)
  })

  test('R-133: clients without an address share one budget', async () => {
    const host = await start({
      before: [
        (req, _res, next) => {
          Object.defineProperty(req, 'ip', { value: undefined })
          next()
        },
      ],
    })
    expect(await guess(host, ana, 3)).toEqual([401, 401, 401])
    expect(await guess(host, bob, 3, 3)).toEqual([401, 401, 429])
  })

  test('R-137: the twins and every spelling of the path share one budget', async () => {
    const host = await start({ settings: { tokenDelivery: 'both' } })
    const paths = ['/auth/login', '/auth/cookie/login', '/AUTH/login', '/auth/login', '/auth/cookie/login']
    const answers = await inTurn(5, (index) =>
      host.post(paths[index] ?? '', { email: `nobody-${index}@example.test`, password: wrongPassword }),
    )
    expect(statuses(answers)).toEqual(five)
    for (const path of [
      ...paths,
      '/auth/login/',
      '/auth/LOGIN',
      '//auth/login',
      '/auth//login',
      '/auth/cookie/login/',
      '/auth/./login',
      '/auth/%6Cogin',
    ]) {
      const { status } = await host.post(path, { email: 'nobody@example.test', password: wrongPassword })
      expect([404, 429], path).toContain(status)
    }
    expect(host.hasher.verified).toBe(5)
  })
})

describe('throttle.login', () => {
  const two = { attempts: 2, windowSeconds: 10 }

  async function limits(login: SubjectBudgetsInput | undefined): Promise<{ pair: number; email: number; client: number }> {
    const host = await open({ options: { throttle: login === undefined ? {} : { login } } })
    const pair = statuses(await inTurn(7, () => host.logIn(bob, wrongPassword, client(400)))).indexOf(429)
    const email = (await guess(host, ana, 52, 1)).indexOf(429)
    const clients = (await failFrom(host, client(0), 102)).indexOf(429)
    return { pair, email, client: clients }
  }

  const usual = { pair: 5, email: 50, client: 100 }

  test.each<[string, SubjectBudgetsInput | undefined, object]>([
    ['left out: 5 of one client for one address, 50 of one address, 100 of one client', undefined, usual],
    ['false: none', false, { pair: -1, email: -1, client: -1 }],
    ['one budget: of the pair', two, { ...usual, pair: 2 }],
    ['one for the address: the defaults for the others', { email: two }, { ...usual, pair: 2, email: 2 }],
    ['none for the client', { email: two, client: false }, { pair: 2, email: 2, client: -1 }],
    ['none for the address', { email: false, client: two }, { pair: 2, email: -1, client: 2 }],
    ['an empty object: the defaults', {}, usual],
  ])('%s', async (_what, login, expected) => {
    expect(await limits(login)).toEqual(expected)
  })
})

describe('what is no failed guess costs nothing', () => {
  test('a full hash queue: 503 with Retry-After', async () => {
    const hasher = countingHasher()
    const verify = hasher.verify.bind(hasher)
    let isBusy = false
    hasher.verify = async (hash, text) => {
      if (isBusy) throw new ServiceUnavailableError({ details: { retry_after_seconds: 1 } })
      return verify(hash, text)
    }
    const host = await start({ options: { passwordHasher: hasher } })
    await host.signUp(ana)
    isBusy = true
    for (const response of await inTurn(8, () => host.logIn(ana, password, client(0)))) {
      expect([response.status, response.body.code, response.headers['retry-after']]).toEqual([503, 'SERVICE_UNAVAILABLE', '1'])
    }
    isBusy = false
    expect(statuses(await inTurn(6, () => host.logIn(ana, wrongPassword, client(0))))).toEqual([...five, 429])
  })

  test.each(['users.findByEmail', 'transaction', 'users.recordLogin', 'sessions.insertWithin'])(
    'a database that fails at %s',
    async (verb) => {
      const database = (await databases())[0]
      const opened = await database?.open({ memory: true })
      if (!opened) throw new Error('no database answers')
      const faulty = faultyStore(createKnexStore({ knex: opened.knex }))
      const host = await start({ knex: opened.knex, options: { store: faulty.store } })
      await host.signUp(ana)
      faulty.break(verb, () => Promise.reject(new ServiceUnavailableError()))
      expect(statuses(await inTurn(8, () => host.logIn(ana, password, client(0))))).toEqual(Array(8).fill(503))
      faulty.break(null)
      expect(statuses(await inTurn(6, () => host.logIn(ana, wrongPassword, client(0))))).toEqual([...five, 429])
      await opened.close()
    },
  )

  test('a body that is refused before the password is looked at', async () => {
    const host = await start()
    const bad = [
      {},
      { email: ana },
      { email: 'x'.repeat(321), password },
      { email: ana, password: 7 },
      { email: [ana], password },
      { email: ana, password: '' },
    ]
    for (const body of [...bad, ...bad]) expect((await host.post('/auth/login', body)).status).toBe(422)
    expect(await failFrom(host, client(0), 6)).toEqual([...five, 429])
  })
})

test('R-136: with the shared counters down five failures get through, not all', async () => {
  const fail = () => Promise.reject(new Error('connection lost'))
  const host = await start({ options: { throttle: { counters: { increment: fail, decrement: fail, reset: fail } } } })
  await host.signUp(ana)
  const refused = new Set([429, 503])
  const answers = statuses(await times(100, (index) => host.logIn(ana, wrongPassword, client(index))))
  expect(answers.filter((status) => !refused.has(status))).toEqual(five)
  expect(await failFrom(host, client(200), 6)).toEqual([...five, 429])
})

test('observers are told of every refusal: the code, the route and a digest of what was counted, never an address', async () => {
  const host = await start({ settings: { tokenDelivery: 'both' } })
  const told: unknown[] = []
  host.auth.events.on('throttled', (payload) => told.push(payload))
  await guess(host, ana, 6)
  await host.post('/auth/cookie/login', { email: ana, password }, client(9))
  await failFrom(host, client(20), 6)
  const keyDigest = expect.stringMatching(/^[\w-]{43}$/)
  expect(told).toEqual(Array(3).fill({ code: 'LOGIN_THROTTLED', route: 'login', keyDigest, retryAfterSeconds: expect.any(Number) }))
  expect(new Set(told.map((payload) => (payload as { keyDigest: string }).keyDigest)).size, 'one of the address, one of the client').toBe(2)
})
