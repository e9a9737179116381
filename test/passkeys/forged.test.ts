import { describe, expect, test } from 'vitest'
import { bearerOf, type LocalHost, openAs, post, signedIn } from '../local/people'
import { challengeOf } from '../mfa/people'
import { databases } from '../support/databases'
import { type Damage, forgedAssertions, forgedRegistrations, handMade } from './hand-made'
import {
  age,
  codeOf,
  newAuthenticator,
  onPasskeys,
  ownerWithFactor,
  type PasskeyOwner,
  register,
  registrationOptions,
  rejected,
  withFactors,
} from './people'

const invalid = [422, 'PASSKEY_INVALID'] as const

// biome-ignore lint/suspicious/noExplicitAny: a route's answer
type Answered = any
interface Sent {
  credential: object
  challenge_token: unknown
}

/** Where an assertion is shown, and what its options come from. */
interface Ceremony {
  options(): Promise<Answered>
  ask(sent: Sent): Promise<Answered>
}

const anyOf = ({ allowCredentials: _, ...options }: Answered) => options

describe.each(await databases())('forged and damaged answers, on $name', { timeout: 60_000 }, (database) => {
  const { start } = onPasskeys(database)
  const open = () =>
    start({
      settings: { ...withFactors, mfaTokenTtlSeconds: 900 },
      options: { throttle: { login: false, mfa: false, mail: false, routes: false } },
    })

  /** Every row of every table that a passkey can change, whoever's. */
  const allRows = ({ knex }: LocalHost) =>
    Promise.all(
      ['auth_users', 'auth_passkeys', 'auth_user_tokens', 'auth_sessions', 'auth_recovery_codes'].map((table) => knex(table).orderBy('id')),
    )

  /** An account whose second passkey is of an authenticator that the tests take apart. */
  async function scene(host: LocalHost) {
    const [owner, other, hand] = [await ownerWithFactor(host), await ownerWithFactor(host), handMade()]
    const begun = await host.auth.service.passkeyRegistrationOptions({ userId: owner.userId })
    const input = { userId: owner.userId, credential: hand.create(begun.options), challenge: begun.challenge }
    await age(host, (await host.auth.service.registerPasskey(input)).id)
    const mfaToken = await challengeOf(host, owner)
    const optionsAt = async (path: string, body: object = {}, headers = {}) => {
      const answer = await post(host, path, body, headers)
      if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`)
      return answer.body
    }
    const login: Ceremony = {
      options: () => optionsAt('/passkeys/login/options'),
      ask: (sent) => post(host, '/passkeys/login', sent),
    }
    const step: Ceremony = {
      options: () => optionsAt('/mfa/passkey/options', { mfa_token: mfaToken }),
      ask: (sent) => post(host, '/mfa/verify', { mfa_token: mfaToken, ...sent }),
    }
    const reauthenticate: Ceremony = {
      options: () => optionsAt('/reauthenticate/passkey/options', {}, bearerOf(owner)),
      ask: (sent) => post(host, '/reauthenticate', sent, bearerOf(owner)),
    }
    const elsewhere = await openAs(host, owner.userId)
    /** Options of ours that are not for the ceremony. */
    const foreign: Record<string, () => Promise<Answered>> = {
      login: login.options,
      step: step.options,
      reauthenticate: reauthenticate.options,
      'another first step': async () => optionsAt('/mfa/passkey/options', { mfa_token: await challengeOf(host, owner) }),
      'another account’s first step': async () => optionsAt('/mfa/passkey/options', { mfa_token: await challengeOf(host, other) }),
      'another session': () => optionsAt('/reauthenticate/passkey/options', {}, bearerOf(elsewhere)),
      'another account’s session': () => optionsAt('/reauthenticate/passkey/options', {}, bearerOf(other)),
      'a registration': () => optionsAt('/passkeys/register/options', {}, bearerOf(owner)),
    }
    return { owner, other, hand, foreign, ceremonies: { login, step, reauthenticate } }
  }

  test.each(['login', 'step', 'reauthenticate'] as const)('at %s each is 401 PASSKEY_REJECTED, and no row changes', async (name) => {
    const host = await open()
    const { owner, other, hand, foreign, ceremonies } = await scene(host)
    const ceremony = ceremonies[name]
    const presented = async (damage?: Damage) => {
      const options = await ceremony.options()
      return { credential: hand.get(options, damage), challenge_token: options.challenge_token }
    }
    const byToken = async (make: (token: string) => unknown): Promise<Sent> => {
      const options = await ceremony.options()
      return { credential: hand.get(options), challenge_token: make(options.challenge_token) }
    }
    const attempts: Record<string, () => Promise<Sent>> = {
      ...Object.fromEntries(Object.entries(forgedAssertions).map(([what, damage]) => [what, () => presented(damage)])),
      ...Object.fromEntries(
        Object.entries(foreign)
          .filter(([of]) => of !== name)
          .map(([of, options]) => [
            `the challenge of ${of}`,
            async () => {
              const others = anyOf({ rpId: 'app.example.test', ...(await options()) })
              return { credential: hand.get(others), challenge_token: others.challenge_token }
            },
          ]),
      ),
      'no challenge token': () => byToken(() => ''),
      'a made-up challenge token': () => byToken(() => 'a.b.c'),
      'a challenge token under another MAC': () => byToken((token) => `${token.slice(0, -6)}AAAAAA`),
      'the challenge token of other options': async () => ({
        ...(await presented()),
        challenge_token: (await ceremony.options()).challenge_token,
      }),
      'an unknown credential': async () => {
        const [options, unknown] = [await ceremony.options(), handMade()]
        unknown.create(options)
        return { credential: unknown.get(options), challenge_token: options.challenge_token }
      },
      'a credential that somebody else’s authenticator signs with': async () => {
        const options = await ceremony.options()
        const { response } = other.authenticator.get(anyOf(options))
        return { credential: { ...hand.get(options), response }, challenge_token: options.challenge_token }
      },
      ...(name === 'login'
        ? { 'no user handle': () => presented({ answer: ({ response }) => delete response.userHandle }) }
        : {
            'a passkey of another account': async () => {
              const options = await ceremony.options()
              return { credential: other.authenticator.get(anyOf(options)), challenge_token: options.challenge_token }
            },
          }),
    }
    expect(Object.keys(attempts).length).toBeGreaterThan(40)
    const before = await allRows(host)
    for (const [what, attempt] of Object.entries(attempts)) {
      const sent = await attempt()
      expect([what, ...codeOf(await ceremony.ask(sent))]).toEqual([what, ...rejected])
    }
    expect(await allRows(host)).toEqual(before)
    await afterwards(host, owner, ceremony, presented)
  })

  /** What needs the account or the time changed; and that a good answer is good all along. */
  async function afterwards(host: LocalHost, owner: PasskeyOwner, ceremony: Ceremony, presented: () => Promise<Sent>): Promise<void> {
    const refused = async (what: string, sent: Sent) => {
      const before = await allRows(host)
      expect([what, ...codeOf(await ceremony.ask(sent))]).toEqual([what, ...rejected])
      expect(await allRows(host)).toEqual(before)
    }
    const counters = (sign_count: number) => host.knex('auth_passkeys').where({ user_id: owner.userId }).update({ sign_count })
    const cloned: unknown[] = []
    host.auth.events.on('passkey.cloned', (payload) => cloned.push(payload))
    await counters(7)
    await refused('a counter that is back at 0', await presented())
    expect(cloned).toHaveLength(1)
    await counters(0)
    const late = await presented()
    host.clock.advance(ceremonySeconds(late))
    await refused('an expired challenge', late)
    const good = await presented()
    expect((await ceremony.ask(good)).status).toBe(200)
    const used = await allRows(host)
    const again = await ceremony.ask(good)
    expect(again.status).toBe(401) // the first step is over by now, too
    expect(await allRows(host)).toEqual(used)
  }

  /** How long its challenge lives: the token says so. */
  function ceremonySeconds({ challenge_token: token }: Sent): number {
    const { iat, exp } = JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString('utf8'))
    return exp - iat
  }

  test('at the registration each is 422 PASSKEY_INVALID, and no row changes; a known credential is 409', async () => {
    const host = await open()
    const { owner, other, hand, foreign } = await scene(host)
    const elsewhere = { ...owner, ...(await openAs(host, owner.userId)) }
    const ask = (sent: Sent) => post(host, '/passkeys/register', sent, bearerOf(owner))
    const made = async (damage?: Damage, asking: { token: string } = owner) => {
      const options = await registrationOptions(host, asking)
      return { credential: handMade().create(options, damage), challenge_token: options.challenge_token }
    }
    const ofAnother = (options: Answered) => ({
      credential: handMade().create({ rp: { id: 'app.example.test' }, user: { id: 'AAAA' }, ...options }),
      challenge_token: options.challenge_token,
    })
    const attempts: Record<string, () => Promise<Sent>> = {
      ...Object.fromEntries(Object.entries(forgedRegistrations).map(([what, damage]) => [what, () => made(damage)])),
      ...Object.fromEntries(
        Object.entries(foreign)
          .filter(([of]) => of !== 'a registration')
          .map(([of, options]) => [`the challenge of ${of}`, async () => ofAnother(await options())]),
      ),
      'the challenge of another session’s registration': () => made({}, elsewhere),
      'the challenge of another account’s registration': () => made({}, other),
      'no challenge token': async () => ({ ...(await made()), challenge_token: '' }),
      'a challenge token under another MAC': async () => {
        const sent = await made()
        return { ...sent, challenge_token: `${sent.challenge_token.slice(0, -6)}AAAAAA` }
      },
      'the challenge token of other options': async () => ({ ...(await made()), challenge_token: (await made()).challenge_token }),
      'an assertion': async () => {
        const options = await registrationOptions(host, owner)
        return { credential: hand.get({ ...options, rpId: options.rp.id }), challenge_token: options.challenge_token }
      },
    }
    expect(Object.keys(attempts).length).toBeGreaterThan(40)
    const before = await allRows(host)
    for (const [what, attempt] of Object.entries(attempts)) {
      const sent = await attempt()
      expect([what, ...codeOf(await ask(sent))]).toEqual([what, ...invalid])
    }
    expect(await allRows(host)).toEqual(before)

    const known = await registrationOptions(host, owner)
    expect(codeOf(await ask({ credential: hand.create(known), challenge_token: known.challenge_token }))).toEqual([409, 'PASSKEY_TAKEN'])
    expect(await allRows(host)).toEqual(before)
    const late = await made()
    const good = await made()
    expect((await ask(good)).status).toBe(201)
    const after = await allRows(host)
    expect(codeOf(await ask(good))).toEqual(invalid)
    host.clock.advance(300)
    expect(codeOf(await ask(late))).toEqual(invalid)
    expect(await allRows(host)).toEqual(after)
  })

  test('a passkey of an account that is inactive or gone is refused like one that nobody has', async () => {
    const host = await open()
    const { owner, hand, ceremonies } = await scene(host)
    const { login, step } = ceremonies
    const sentTo = async (ceremony: Ceremony) => {
      const options = await ceremony.options()
      return { credential: hand.get(options), challenge_token: options.challenge_token }
    }
    const [first, second] = [await sentTo(login), await sentTo(step)]
    const unknown = await login.ask({ ...first, credential: { ...first.credential, id: 'AAAA', rawId: 'AAAA' } })
    await host.knex('auth_users').where({ id: owner.userId }).update({ is_active: false })
    const before = await allRows(host)
    const inactive = await login.ask(first)
    expect([inactive.status, inactive.body]).toEqual([unknown.status, unknown.body])
    expect(codeOf(await step.ask(second))).toEqual(rejected)
    expect(await allRows(host)).toEqual(before)
    await host.auth.service.activateUser(owner.userId)
    for (const table of ['auth_sessions', 'auth_user_tokens', 'auth_recovery_codes', 'auth_passkeys'])
      await host.knex(table).where({ user_id: owner.userId }).delete()
    await host.knex('auth_users').where({ id: owner.userId }).delete()
    const gone = await login.ask(await sentTo(login))
    expect([gone.status, gone.body]).toEqual([unknown.status, unknown.body])
  })

  test('a passkey that counts is refused where its counter stands still or goes back', async () => {
    const host = await open()
    const [person, authenticator] = [await signedIn(host), newAuthenticator({ counts: true })]
    expect((await register(host, person, authenticator)).status).toBe(201)
    const cloned: unknown[] = []
    host.auth.events.on('passkey.cloned', (payload) => cloned.push(payload))
    const logInAt = async (counter?: number) => {
      const { body: options } = await post(host, '/passkeys/login/options')
      const credential = authenticator.get(options, counter === undefined ? {} : { counter })
      return post(host, '/passkeys/login', { credential, challenge_token: options.challenge_token })
    }
    expect((await logInAt(9)).status).toBe(200)
    const before = await allRows(host)
    for (const counter of [9, 8, 1, 0]) expect(codeOf(await logInAt(counter))).toEqual(rejected)
    expect(await allRows(host)).toEqual(before)
    expect(cloned).toHaveLength(4)
    expect((await logInAt(10)).status).toBe(200)
  })
})
