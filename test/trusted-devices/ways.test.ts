import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { OidcClient } from '../../src'
import { codeChallengeOf } from '../../src/social/app-redirect/exchange-code'
import { type LocalHost, otherPassword, password } from '../local/people'
import { addIdentity } from '../social/accounts-at-hand'
import { type Browser, signIn, startLogin } from '../support/app'
import { databases } from '../support/databases'
import { mountedRoutes } from '../support/mounted-routes'
import { onTrust, send, type Trusting, trusting } from './people'

const appRedirects = ['com.example.app:/signed-in'] as const
const loginSettings = { emailLogin: 'link', emailLoginUrlTemplate: 'https://app.example.test/in/{token}' } as const

type Door = (host: LocalHost, browser: Browser, path: string, person: Trusting) => Promise<supertest.Response>

const byPassword: Door = (_host, browser, path, { email }) => send(browser, path, { email, password })

const activation: Door = async (host, browser, path, { userId, email }) => {
  await host.knex('auth_users').where({ id: userId }).update({ is_active: false, activated_at: null, last_login_at: null })
  const link = (await host.auth.service.requestActivation(email)) as { token: string }
  return path.endsWith(':token') ? send(browser, path.replace(':token', link.token)) : send(browser, path, { token: link.token })
}

async function linked(host: LocalHost, { userId, email }: Trusting, provider = 'corp') {
  const profile = { sub: `subject-of-${userId}`, email }
  await addIdentity(host.knex, userId, { subject: profile.sub, email, provider })
  return profile
}

/** Every first step of a login, by its route without `/cookie` or `/session`. */
const doors: Readonly<Record<string, Door>> = {
  'POST /login': byPassword,
  'POST /activate': activation,
  'POST /activate/:token': activation,
  async 'POST /password-reset/confirm'(host, browser, path, { email }) {
    const link = await host.auth.service.requestPasswordReset(email)
    return send(browser, path, { token: link?.token, new_password: otherPassword })
  },
  async 'POST /email-login/confirm'(host, browser, path, { email }) {
    const { url } = await host.auth.service.requestEmailLogin(email)
    return send(browser, path, { token: url?.split('/').at(-1) })
  },
  'GET /oauth/:provider/callback': async (host, browser, _path, person) => signIn(host, browser, { profile: await linked(host, person) }),
  async 'POST /oauth/:provider/token'(host, browser, path, person) {
    const access_token = host.provider.issueAccessToken({ profile: await linked(host, person) })
    return send(browser, path.replace(':provider', 'corp'), { access_token })
  },
  async 'POST /oauth/exchange'(host, browser, path, person) {
    const verifier = 'v'.repeat(43)
    const query = { redirect_to: appRedirects[0], code_challenge: codeChallengeOf(verifier) }
    const { callbackQuery } = await startLogin(host, browser, { profile: await linked(host, person), query })
    const answer = await browser.get('/auth/oauth/corp/callback').set('Sec-Fetch-Site', 'cross-site').query(callbackQuery)
    return send(browser, path, { code: String(answer.headers['location']).split('code=')[1], code_verifier: verifier })
  },
}

/** They deliver a login, and no first step of one that asks for a code. */
const others = ['POST /refresh', 'POST /mfa/verify', 'POST /mfa/confirm', 'POST /passkeys/login']

describe('every way to log in, in a trusted browser', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onTrust(sqlite)
  const open = (tokenDelivery: 'cookie' | 'both' | 'session') =>
    start({
      settings: { tokenDelivery, ...loginSettings, appRedirects: tokenDelivery === 'both' ? appRedirects : [] },
      providers: { corp: (provider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl })) },
    })

  test.each(['cookie', 'both', 'session'] as const)(
    'attack: in delivery %s, a login by email, provider, activation or reset in a trusted browser asks for the second factor',
    async (tokenDelivery) => {
      mountedRoutes.length = 0
      const host = await open(tokenDelivery)
      const shaped = (mountedRoutes[0] ?? []).filter(({ delivers }) => delivers === 'login')
      const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path.replace(/^\/(cookie|session)(?=\/)/, '')}`
      const names = new Set(shaped.map(nameOf))
      expect([...names].filter((name) => !(name in doors) && !others.includes(name))).toEqual([])
      expect([...Object.keys(doors)].filter((name) => !names.has(name) && name !== 'POST /oauth/exchange')).toEqual([])

      const base = tokenDelivery === 'both' ? '/cookie' : ''
      const shortened: string[] = []
      for (const route of shaped.filter((one) => nameOf(one) in doors)) {
        const person = await trusting(host, { base })
        const response = await doors[nameOf(route)]?.(host, person.browser, route.path, person)
        expect([route.path, response?.status]).toEqual([route.path, 200])
        const isOneStep = response?.body.mfa_required !== true
        if (isOneStep) shortened.push(route.path)
      }
      expect(shortened.sort()).toEqual(
        shaped
          .map(({ path }) => path)
          .filter((path) => path.endsWith('/login') && !path.includes('passkeys'))
          .sort(),
      )
    },
  )
})
