import { describe, expect, test } from 'vitest'
import { OidcClient } from '../../src'
import type { Mounted, MountOptions } from '../support/app'
import { databases } from '../support/databases'
import { answer } from '../support/fake-provider'
import { begin, callBack, type HttpResponse, newPerson, onDatabase } from './redirect-steps'

/** Section 19, details 19.1: `POST /logout { provider_logout: true }` says how the browser ends its session at the provider. */

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

const startWith = (settings: MountOptions['settings'] = {}) =>
  start({
    settings,
    providers: {
      corp: (provider) => new OidcClient(provider.oidcOptions({ endSessionUrl: `${provider.issuer}/end?tenant=7` })),
      plain: (provider) => new OidcClient(provider.oidcOptions()),
    },
  })

async function signedIn(host: Mounted, key = 'corp'): Promise<HttpResponse> {
  const { query, cookie } = await begin(host, { key, profile: newPerson() })
  return callBack(host, query, { key, cookie })
}

const logOut = (host: Mounted, body: object) => host.browser().post('/auth/logout').send(body)
const urlOf = ({ status, body }: HttpResponse) => {
  expect([status, Object.keys(body)]).toEqual([200, ['logout_url']])
  return new URL(body.logout_url)
}

test('the address has the client id and where to go afterwards, and no token', async () => {
  const host = await startWith({ logoutRedirect: 'https://app.example.test/signed-out' })
  const { body } = await signedIn(host)
  const url = urlOf(await logOut(host, { refresh_token: body.refresh_token, provider_logout: true }))
  expect(`${url.origin}${url.pathname}`).toBe(`${host.provider.issuer}/end`)
  expect(Object.fromEntries(url.searchParams)).toEqual({
    tenant: '7',
    client_id: 'client-1',
    post_logout_redirect_uri: 'https://app.example.test/signed-out',
  })
  expect((await host.browser().post('/auth/refresh').send({ refresh_token: body.refresh_token })).status).toBe(401)
})

test('a path of logoutRedirect is told as an address; without the setting nothing is', async () => {
  const [path, none] = [await startWith({ logoutRedirect: '/bye' }), await startWith()]
  const target = async (host: Mounted) => {
    const { body } = await signedIn(host)
    return urlOf(await logOut(host, { refresh_token: body.refresh_token, provider_logout: true })).searchParams.get(
      'post_logout_redirect_uri',
    )
  }
  expect(await target(path)).toMatch(/^https?:\/\/[^/]+\/bye$/)
  expect(await target(none)).toBeNull()
})

test('also where every session of the account ends', async () => {
  const host = await startWith()
  const { body } = await signedIn(host)
  urlOf(await logOut(host, { refresh_token: body.refresh_token, provider_logout: true, all_sessions: true }))
})

test('who does not ask gets 204, as before', async () => {
  const host = await startWith()
  for (const asked of [{}, { provider_logout: false }]) {
    const { body } = await signedIn(host)
    expect((await logOut(host, { refresh_token: body.refresh_token, ...asked })).status).toBe(204)
  }
})

describe('logout_url is null', () => {
  const answered = async (host: Mounted, refreshToken: string) => {
    const { status, body } = await logOut(host, { refresh_token: refreshToken, provider_logout: true })
    expect([status, body]).toEqual([200, { logout_url: null }])
  }

  test('for a provider without such an endpoint, for a token nobody knows, and the second time', async () => {
    const host = await startWith()
    const { body } = await signedIn(host)
    await answered(host, 'x'.repeat(112))
    await logOut(host, { refresh_token: body.refresh_token })
    await answered(host, body.refresh_token)
    const plain = await startWith()
    await answered(plain, (await signedIn(plain, 'plain')).body.refresh_token)
  })
})

test('by cookies, and the service says the same', async () => {
  const host = await startWith({ tokenDelivery: 'cookie', oauthSuccessRedirect: null })
  const browser = host.browser()
  const login = await browser.get('/auth/oauth/corp/login')
  const { callbackQuery } = host.provider.authorize(String(login.headers['location']))
  await browser.get('/auth/oauth/corp/callback').query(callbackQuery)
  urlOf(await browser.post('/auth/logout').send({ provider_logout: true }))

  const bearer = await startWith()
  const { body } = await signedIn(bearer)
  const { logoutUrl } = await bearer.auth.service.logOut(body.refresh_token, { providerLogout: true })
  expect(logoutUrl).toContain('/end?tenant=7&client_id=client-1')
  expect(await bearer.auth.service.logOut(body.refresh_token, { providerLogout: true })).toEqual({ logoutUrl: null })
  expect(await bearer.auth.service.logOut(body.refresh_token)).toBeUndefined()
})

test('discovery finds the endpoint', async () => {
  const host = await start({
    providers: {
      corp: (provider) => {
        const { issuer, clientId, clientSecret, authorizeUrl, tokenUrl, jwksUri } = provider
        const endpoints = { authorization_endpoint: authorizeUrl, token_endpoint: tokenUrl, jwks_uri: jwksUri }
        provider.on('discovery', answer(200, { issuer, ...endpoints, end_session_endpoint: `${issuer}/session/end` }))
        return new OidcClient({ issuer, clientId, clientSecret })
      },
    },
  })
  const { body } = await signedIn(host)
  expect(urlOf(await logOut(host, { refresh_token: body.refresh_token, provider_logout: true })).pathname).toBe('/session/end')
})
