import { describe, expect, test } from 'vitest'
import type { Device } from '../../src/sessions/login'
import { type LocalHost, newAddress, onLocal, password, post, signedIn } from '../local/people'
import { challengeOf, enrolled, mfaSettings } from '../mfa/people'
import { cookieAttributes, cookiePair, type HttpResponse, isCleared, setCookies } from '../social/redirect-steps'
import { databases } from '../support/databases'

const day = 86_400
const unhurried = { login: false, signup: false, mfa: false, links: false, mail: false, routes: false } as const

/** What the cookie holds: base64url of JSON, the end, and the MAC. */
function devicesIn(response: HttpResponse, name = 'auth_device'): Device[] {
  const line = setCookies(response).findLast((line) => line.startsWith(`${name}=`)) ?? '' // expiries of a doubled name come first
  const [encoded = ''] = (line.split('; ')[0] ?? '').replace(`${name}=`, '').split('.')
  return JSON.parse(Buffer.from(encoded, 'base64url').toString() || '[]')
}

describe.each(await databases())('the device cookie on $name', (database) => {
  const { start } = onLocal(database)
  const open = (settings: object = {}) => start({ settings: { tokenDelivery: 'cookie', ...settings }, options: { throttle: unhurried } })
  const logIn = (host: LocalHost, { email }: { email: string }, cookie = '', path = '/login') =>
    post(host, path, { email, password }, cookie === '' ? {} : { Cookie: cookie })

  test('is a proof cookie of 180 days: HttpOnly, Lax, at every path, and __Host- where cookieSecure is on (25.1.1)', async () => {
    const plain = await open({ cookieDomain: 'example.test' })
    const attributes = { httponly: '', samesite: 'Lax', 'max-age': String(180 * day), expires: expect.any(String) }
    expect(cookieAttributes(await logIn(plain, await signedIn(plain)), 'auth_device')).toEqual({ ...attributes, path: '/' })
    const secure = await open({ cookieSecure: true, cookieDomain: 'example.test' })
    const expected = { ...attributes, path: '/', secure: '' }
    expect(cookieAttributes(await logIn(secure, await signedIn(secure)), '__Host-auth_device')).toEqual(expected)
  })

  test('names nobody: neither the address, nor the id, nor the password hash', async () => {
    const host = await open()
    const person = await signedIn(host)
    const text = JSON.stringify(devicesIn(await logIn(host, person)))
    for (const secret of [person.email, person.userId, await host.hasher.hash(password)]) expect(text).not.toContain(secret)
  })

  test('is never set with a challenge, and is set when the challenge is finished', async () => {
    const host = await open({ ...mfaSettings })
    const person = await enrolled(host)
    const challenge = await logIn(host, person)
    expect([challenge.body.mfa_required, cookiePair(challenge, 'auth_device')]).toEqual([true, null])
    const code = person.app.nextCode()
    const verified = await post(host, '/mfa/verify', { mfa_token: await challengeOf(host, person), code })
    expect([verified.status, devicesIn(verified).length]).toEqual([200, 1])
  })

  test('is not set by a refresh, by a failed login, or by a login in the body', async () => {
    const host = await open({ tokenDelivery: 'both' })
    const person = await signedIn(host)
    const refreshed = await post(host, '/cookie/refresh', {}, { Cookie: `refresh_token=${person.refreshToken}` })
    const failed = await post(host, '/cookie/login', { email: person.email, password: 'not the right harbour' })
    const inBody = await logIn(host, person)
    expect([refreshed.status, failed.status, inBody.status]).toEqual([200, 401, 200])
    for (const response of [refreshed, failed, inBody]) expect(cookiePair(response, 'auth_device')).toBeNull()
  })

  test('is set by server-side sessions in delivery bearer too', async () => {
    const host = await open({ tokenDelivery: 'bearer' })
    expect(devicesIn(await logIn(host, await signedIn(host), '', '/session/login'))).toHaveLength(1)
  })

  test('holds ten accounts, each with an end of its own; the oldest gives way, and an account is in it once', async () => {
    const host = await open()
    const people = await Promise.all(Array.from({ length: 11 }, () => signedIn(host)))
    let response = await logIn(host, people[0] ?? never())
    const first = devicesIn(response)[0]
    for (const person of [...people.slice(0, 10), people[0] ?? never()]) {
      host.clock.advance(day)
      response = await logIn(host, person, cookiePair(response, 'auth_device') ?? '')
    }
    const ten = devicesIn(response)
    expect([ten.length, new Set(ten.map(({ address }) => address)).size, ten[0]?.address]).toEqual([10, 10, first?.address])
    expect(cookieAttributes(response, 'auth_device')?.['max-age']).toBe(String(180 * day))

    const more = devicesIn(await logIn(host, people[10] ?? never(), cookiePair(response, 'auth_device') ?? ''))

    expect(more.slice(1)).toEqual(ten.slice(0, 9))
    expect((cookiePair(response, 'auth_device') ?? '').length).toBeLessThan(4_000)
    expect(ten.map(({ end }) => end).toSorted((one, other) => other - one)).toEqual(ten.map(({ end }) => end))
  })

  test('forgets each account 180 days after its own login', async () => {
    const host = await open()
    const [ana, bruno] = [await signedIn(host), await signedIn(host)]
    const first = await logIn(host, ana)
    host.clock.advance(179 * day)
    const second = await logIn(host, bruno, cookiePair(first, 'auth_device') ?? '')
    expect(devicesIn(second)).toHaveLength(2)
    host.clock.advance(2 * day)
    expect(devicesIn(await logIn(host, bruno, cookiePair(second, 'auth_device') ?? ''))).toHaveLength(1)
  })

  test('a logout keeps it without its session; one of all sessions, and one of an ended session, leave it alone', async () => {
    const host = await open()
    const person = await signedIn(host)
    const jar = (response: HttpResponse) => ['auth_device', 'refresh_token'].map((name) => cookiePair(response, name)).join('; ')
    const login = await logIn(host, person)
    const [before] = devicesIn(login)

    const logout = await post(host, '/logout', {}, { Cookie: jar(login) })
    const again = await post(host, '/logout', {}, { Cookie: jar(login) })

    expect([logout.status, isCleared(logout, 'refresh_token')]).toEqual([204, true])
    expect(devicesIn(logout)).toEqual([{ ...before, sessionId: null }])
    expect([again.status, cookiePair(again, 'auth_device')]).toEqual([204, null])
    const all = await post(host, '/logout', { all_sessions: true }, { Cookie: jar(await logIn(host, person)) })
    expect([all.status, cookiePair(all, 'auth_device')]).toEqual([204, null])
  })

  test('a login that takes the place of another account’s session keeps that device without its session, while it lived', async () => {
    const host = await open()
    const [ana, bruno] = [await signedIn(host), await signedIn(host)]
    const jar = (response: HttpResponse) => ['auth_device', 'auth_session'].map((name) => cookiePair(response, name)).join('; ')
    const first = await logIn(host, ana, '', '/session/login')
    const cookie = jar(first)
    expect(devicesIn(await logIn(host, bruno, cookie, '/session/login'))[1]).toMatchObject({ sessionId: null })
    expect(devicesIn(await logIn(host, bruno, cookie, '/session/login'))[1]).toEqual(devicesIn(first)[0])
  })

  test('one under another MAC is none, and one that came twice is one', async () => {
    const host = await open()
    const person = await signedIn(host)
    const other = await logIn(host, { email: (await signedIn(host)).email })
    const pair = cookiePair(other, 'auth_device') ?? ''
    for (const cookie of [`${pair}x`, pair.replace(/\.(\d)/, (_dot, digit) => `.${(Number(digit) + 1) % 10}`)])
      expect(devicesIn(await logIn(host, person, cookie))).toHaveLength(1)
    for (const cookie of [pair, `${pair}; ${pair}`]) expect(devicesIn(await logIn(host, person, cookie))).toHaveLength(2)
  })

  test('a sign-up that is born active sets it for the new account', async () => {
    const host = await open({ autoActivate: true })
    expect(devicesIn(await post(host, '/signup', { email: newAddress(), password }))).toHaveLength(1)
  })
})

function never(): never {
  throw new Error('there is one')
}
