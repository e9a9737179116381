import { describe, expect, test, vi } from 'vitest'
import { bearerOf, type LocalHost, onLocal, password, post, signedIn } from '../local/people'
import { cookiePair } from '../social/redirect-steps'
import { databases } from '../support/databases'

const unhurried = { login: false, signup: false, routes: false } as const

describe.each(await databases())('X14: requests for links on $name', (database) => {
  const { start } = onLocal(database)
  const open = () => start({ settings: { tokenDelivery: 'both' }, options: { throttle: unhurried } })

  async function atHome(host: LocalHost) {
    const person = await signedIn(host)
    const login = await post(host, '/cookie/login', { email: person.email, password })
    return { ...person, cookie: cookiePair(login, 'auth_device') ?? '' }
  }

  type Person = Awaited<ReturnType<typeof atHome>>
  const askReset = (host: LocalHost, { email }: Person, presented: { Cookie?: string; previous_token?: string } = {}) => {
    const { Cookie, ...body } = presented
    return post(host, '/password-reset/request', { email, ...body }, Cookie === undefined ? {} : { Cookie })
  }
  const resets = (host: LocalHost, { email }: Person) =>
    host.mails.mails.filter(({ to, kind }) => to === email && kind === 'password_reset').length

  /** Nothing more has come for a while. */
  async function settledMails(host: LocalHost, person: Person): Promise<void> {
    for (let seen = -1; seen !== resets(host, person); await new Promise((resolve) => setTimeout(resolve, 250))) seen = resets(host, person)
  }

  /** 21 mails of a stranger, and as many requests as it takes, all from the owner's office. */
  async function attack(host: LocalHost, person: Person): Promise<void> {
    for (let round = 0; round < 5; round++) {
      for (let count = 0; count < 6; count++) await askReset(host, person)
      host.clock.advance(3_600)
    }
    for (let count = 0; count < 6; count++) await askReset(host, person)
    expect((await askReset(host, person)).status, 'strangers are kept out').toBe(429)
  }

  test.each(['the cookie', 'previous_token'])('by %s the owner still gets five requests per 900 s and five mails an hour', async (by) => {
    const host = await open()
    const person = await atHome(host)
    await attack(host, person)
    await settledMails(host, person)
    const before = resets(host, person)
    const presented = by === 'the cookie' ? { Cookie: person.cookie } : { previous_token: person.refreshToken }

    const answers: number[] = []
    for (let count = 0; count < 6; count++) answers.push((await askReset(host, person, presented)).status)

    expect(answers).toEqual([202, 202, 202, 202, 202, 429])
    await vi.waitFor(() => expect(resets(host, person) - before).toBe(5))
    const refusedMails = vi.fn()
    host.auth.events.on('throttled', refusedMails)
    host.clock.advance(900)
    expect((await askReset(host, person, presented)).status).toBe(202) // the request is free again, its mail only after an hour
    await vi.waitFor(() => expect(refusedMails).toHaveBeenCalledWith(expect.objectContaining({ route: 'mail' })))
    expect(resets(host, person) - before).toBe(5)
  })

  test('each purpose has its requests of its own, and a verification takes a device too', async () => {
    const host = await open()
    const person = await atHome(host)
    const ask = (headers: Record<string, string>) => post(host, '/email-verify/request', {}, { ...bearerOf(person), ...headers })
    for (let count = 0; count < 5; count++) await ask({})
    expect((await ask({})).status).toBe(429)
    expect((await ask({ Cookie: person.cookie })).status).toBe(202)
    const inBody = { previous_token: person.refreshToken }
    expect((await post(host, '/email-verify/request', inBody, bearerOf(person))).status).toBe(202)
  })

  test('a device of another account asks as a stranger', async () => {
    const host = await open()
    const [ana, bruno] = [await atHome(host), await atHome(host)]
    for (let count = 0; count < 5; count++) await askReset(host, ana)
    expect((await askReset(host, ana, { Cookie: bruno.cookie })).status).toBe(429)
    expect((await askReset(host, ana, { previous_token: bruno.refreshToken })).status).toBe(429)
  })
})
