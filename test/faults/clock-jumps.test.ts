import { afterEach, expect, test, vi } from 'vitest'
import { createAuthRouter, createAuthTables, createKnexStore } from '../../src'
import { otherPassword, password, pending, post, resetLink, signedIn } from '../local/people'
import { challengeOf, enrolled, onMfa, outcome, verify } from '../mfa/people'
import { baseUrl, testSecret } from '../support/app'
import { databases } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { logTap } from '../support/log-tap'

const hour = 3_600
afterEach(() => void vi.useRealTimers())

for (const database of await databases()) {
  const { start } = onMfa(database)

  test(`F23: a clock that jumps an hour ahead and back makes nothing valid again that was used or has ended, on ${database.name}`, async () => {
    const host = await start({ options: { throttle: { login: false, mfa: false, links: false, routes: false } } })
    const { link } = await pending(host)
    const person = await signedIn(host)
    const reset = await resetLink(host, person.email)
    const first = { refresh_token: person.refreshToken }
    const second = { refresh_token: (await post(host, '/refresh', first)).body.refresh_token }
    expect((await post(host, '/activate', { token: link })).status).toBe(200)
    expect((await post(host, '/password-reset/confirm', { token: reset, new_password: otherPassword })).status).toBe(200)

    for (const jump of [hour, -2 * hour, hour, -hour]) {
      host.clock.advance(jump)
      expect(outcome(await post(host, '/activate', { token: link })), `${jump}`).toBe('INVALID_TOKEN')
      const confirm = { token: reset, new_password: password }
      expect(outcome(await post(host, '/password-reset/confirm', confirm)), `${jump}`).toBe('INVALID_TOKEN')
      expect(outcome(await post(host, '/refresh', first)), `${jump}`).toBe('INVALID_TOKEN')
      expect(outcome(await post(host, '/refresh', second)), `${jump}`).toBe('INVALID_TOKEN')
    }
  })

  test(`F23: after a jump back no code is accepted of a step that is over, and after the jump ahead again the used one is not, on ${database.name}`, async () => {
    const host = await start({ options: { throttle: { login: false, mfa: false, routes: false } } })
    const person = await enrolled(host)
    const used = person.app.nextCode()
    expect((await verify(host, await challengeOf(host, person), used)).status).toBe(200)

    host.clock.advance(-hour)
    for (const steps of [-1, 0, 1])
      expect(outcome(await verify(host, await challengeOf(host, person), person.app.code(steps)))).toBe('MFA_CODE_INVALID')
    const [recoveryCode] = person.recoveryCodes
    expect((await verify(host, await challengeOf(host, person), recoveryCode)).status).toBe(200)

    host.clock.advance(hour)
    expect(outcome(await verify(host, await challengeOf(host, person), used))).toBe('MFA_CODE_INVALID')
    expect((await verify(host, await challengeOf(host, person), person.app.nextCode())).status).toBe(200)
  })
}

test('F23: where the host brings no clock, budgets go by the monotonic one: a wall clock set ahead opens none', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { knex, close } = await sqlite.open({ memory: true })
  await createAuthTables(knex)
  const { service } = createAuthRouter({
    settings: { jwtSecret: testSecret, oauthRedirectBaseUrl: baseUrl },
    store: createKnexStore({ knex }),
    environment: 'test',
    passwordHasher: fastHasher(),
    logger: logTap(),
  })
  const guess = () =>
    service.logIn({ email: 'ana@example.test', password, client: '192.0.2.1' }).catch(({ code }: { code: string }) => code)
  for (let guesses = 0; guesses < 5; guesses++) expect(await guess()).toBe('UNAUTHORIZED')
  expect(await guess()).toBe('LOGIN_THROTTLED')

  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + hour * 1000 })
  expect(await guess()).toBe('LOGIN_THROTTLED')
  vi.setSystemTime(Date.now() - 2 * hour * 1000)
  expect(await guess()).toBe('LOGIN_THROTTLED')
  vi.useRealTimers()
  await close()
})
