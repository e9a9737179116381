import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { newAddress, onLocal, post, userOf } from '../local/people'
import type { Mounted } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { begin, callBack, cookiePair, type HttpResponse, newPerson } from './redirect-steps'

const settings = { autoActivate: true, backendLinks: true, cookieSecure: true } as const
const unlimited = { throttle: { login: false, signup: false, links: false, mail: false, routes: false } } as const
const [device, browserMark] = ['__Host-auth_device', '__Host-oauth_browser']
const pairOf = (response: HttpResponse, name: string) => cookiePair(response, name) ?? 'missing=1'
const pairsOf = (response: HttpResponse, names: readonly string[]) => names.map((name) => pairOf(response, name)).join('; ')

/** The session that the newest entry of the device cookie names. */
function sessionOf(response: HttpResponse): unknown {
  const [value = ''] = decodeURIComponent(pairOf(response, device).split('=')[1] ?? '').split('.')
  return JSON.parse(Buffer.from(value, 'base64url').toString())[0].sessionId
}

type Profile = Parameters<typeof newPerson>[0]

/** A login at a provider in a browser of its own, with every cookie that our answers set. */
async function logIn(host: Mounted, key: string, profile: Profile) {
  const attempt = await begin(host, { key, ...(profile && { profile }) })
  const cookie = `${attempt.cookie}; ${pairOf(attempt.response, browserMark)}`
  return callBack(host, attempt.query, { key, cookie })
}

/** An attempt of the attacker, planted by another subdomain: it can set `oauth_state`, but no cookie with the prefix `__Host-`. */
async function openPlanted(host: Mounted, key: string, profile: Profile, own = '') {
  const attempt = await begin(host, { key, ...(profile && { profile }) })
  return callBack(host, attempt.query, { key, cookie: `${attempt.cookie}; ${own}` })
}

describe.each(await databases())('a planted attempt, on $name', (database) => {
  const { start } = onLocal(database)
  const names = {
    cookie: ['access_token', 'refresh_token', device],
    both: ['access_token', 'refresh_token', device],
    session: ['auth_session', device],
  }

  /** What reaches the plain routes: in `both`, the refresh cookie is for the cookie routes. */
  const presented = { ...names, both: ['access_token', device] }

  describe.each(['cookie', 'both', 'session'] as const)('delivery %s', (tokenDelivery) => {
    const open = () => start({ settings: { ...settings, tokenDelivery }, providers: { corp: {}, attic: {} }, options: unlimited })

    test('gives the browser a device cookie that names no session (24, new cookies that prove something)', async () => {
      const host = await open()
      const profile = newPerson()
      expect(sessionOf(await logIn(host, 'corp', profile))).toEqual(expect.any(String))
      const visit = await begin(host, { key: 'corp' }) // the victim has a browser mark of her own
      for (const own of ['', pairOf(visit.response, browserMark)])
        expect(sessionOf(await openPlanted(host, 'corp', profile, own))).toBeNull()
    })

    test('a device entry of another session finishes no change of address that a planted session cookie names (25.3.1)', async () => {
      const host = await open()
      const profile = newPerson()
      const asking = await logIn(host, 'corp', profile)
      const other = await logIn(host, 'corp', profile)
      const to = newAddress()
      await post(host, '/email-change/request', { new_email: to }, { Cookie: pairsOf(asking, presented[tokenDelivery]) }).expect(202)
      const token = tokenOf(await host.mails.next({ kind: 'email_change', to }))
      const session = names[tokenDelivery].filter((name) => name !== device)
      const planted = `${pairsOf(asking, session)}; ${pairOf(other, device)}`
      const path = tokenDelivery === 'both' ? '/cookie/email-change/confirm' : '/email-change/confirm'
      expect((await post(host, path, { token }, { Cookie: planted })).body.code).toBe('UNAUTHORIZED')
      expect((await post(host, path, { token }, { Cookie: pairsOf(asking, names[tokenDelivery]) })).status).toBe(200)
    })
  })

  test('two tabs of one browser finish their logins, and the mark outlives the first', async () => {
    const host = await start({ settings: { ...settings, tokenDelivery: 'cookie' }, providers: { corp: {} }, options: unlimited })
    const first = await begin(host, { key: 'corp', profile: newPerson() })
    const mark = pairOf(first.response, browserMark)
    const second = await begin(host, { key: 'corp', profile: newPerson(), cookie: `${first.cookie}; ${mark}` })
    expect(pairOf(second.response, browserMark).split('.')[0]).toBe(mark.split('.')[0])
    for (const { query } of [second, first])
      expect((await callBack(host, query, { key: 'corp', cookie: `${second.cookie}; ${mark}` })).status).toBe(200)
  })

  test.each([true, false])(
    'the owner verifies her address in a browser that a planted attempt visited: the account is taken over from the attacker, sessions in the store: %j (24.2)',
    async (keepsSessions) => {
      const store = createKnexStore({ knex: (await start()).knex, ...(!keepsSessions && { sessions: false }) })
      const host = await start({
        settings: { ...settings, tokenDelivery: 'cookie' },
        providers: { attic: {} },
        options: { ...unlimited, store },
      })
      const email = newAddress()
      const claimed = newPerson({ email, email_verified: null })
      const attacker = await logIn(host, 'attic', claimed)
      const visited = await openPlanted(host, 'attic', claimed)
      await post(host, '/email-verify/request', {}, { Cookie: pairsOf(attacker, presented.cookie) }).expect(202)
      const token = tokenOf(await host.mails.next({ kind: 'email_verification', to: email }))
      const taken: string[] = []
      host.auth.events.on('account.taken_over', ({ userId }) => taken.push(userId))
      const { body } = await post(host, '/email-verify/confirm', { token }, { Cookie: pairsOf(visited, ['access_token', device]) })
      expect([body.password_required, taken]).toEqual([true, [(await userOf(host, email)).id]])
    },
  )
})
