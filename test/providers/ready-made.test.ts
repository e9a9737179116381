import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { rowCounts } from '../social/accounts-at-hand'
import { begin, callBack, newPerson, onDatabase } from '../social/redirect-steps'
import { type Mounted, signIn } from '../support/app'
import { databases } from '../support/databases'
import { answer, hostileAnswers } from '../support/fake-provider'
import { type ReadyMade, readyMade } from './ready-made'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

async function hostOf(key: string, provider: ReadyMade, settings: object = {}): Promise<Mounted> {
  return start({ providers: { [key]: provider.client }, settings, options: { throttle: { routes: false } } })
}

const unlucky = ['never answers', 'drips a byte at a time', 'a 100 MB stream'] // as slow for each client: hostile-provider.test.ts has them
const hostile = Object.entries(hostileAnswers).filter(([name]) => !unlucky.includes(name))

describe.each(Object.entries(readyMade))('%s, by its documented answers', (key, provider) => {
  const { identity } = provider

  test('signs a person in, and reads id, address, its verification, name and picture', async () => {
    const host = await hostOf(key, provider)
    const person = provider.somebody()
    provider.serve(host.provider, person)
    const { body, status, text } = await signIn(host, host.browser(), { key })
    expect(status, text + host.logs.text()).toBe(200)
    const [found] = await host.auth.service.listIdentities(body.user_id)
    expect(found).toMatchObject({
      provider: key,
      subject: identity.subject(person),
      email: person.email,
      emailVerified: identity.emailVerified,
      name: identity.name,
      picture: identity.picture(person),
    })
  })

  test('a denial is 401 OAUTH_PROVIDER_DENIED, and nobody is asked', async () => {
    const host = await hostOf(key, provider)
    const { query, cookie } = await begin(host, { key })
    const denied = await callBack(host, { state: String(query['state']), error: 'access_denied' }, { key, cookie })
    expect([denied.status, denied.body.code, host.provider.requests]).toEqual([401, 'OAUTH_PROVIDER_DENIED', []])
  })

  test('without an address it is 422 OAUTH_EMAIL_MISSING', async () => {
    const host = await hostOf(key, provider)
    provider.serve(host.provider, { ...provider.somebody(), email: undefined })
    const { status, body } = await signIn(host, host.browser(), { key })
    expect([status, body.code]).toEqual([422, 'OAUTH_EMAIL_MISSING'])
  })

  test('an address that is not verified makes an account, and links to nobody', async () => {
    const host = await hostOf(key, provider, { oauthLinkByVerifiedEmail: true })
    const person = { ...provider.somebody(), ...provider.unverified }
    provider.serve(host.provider, person)
    const { body } = await signIn(host, host.browser(), { key })
    const [found] = await host.auth.service.listIdentities(body.user_id)
    expect(found?.emailVerified).not.toBe(true)
    const other = { ...provider.somebody(), ...provider.unverified, email: person.email }
    provider.serve(host.provider, other)
    const refused = await signIn(host, host.browser(), { key })
    expect([refused.status, refused.body.code]).toEqual([409, 'OAUTH_EMAIL_UNVERIFIED'])
  })

  test('an address that changed at the provider changes nothing about whose account it is', async () => {
    const host = await hostOf(key, provider)
    const person = provider.somebody()
    provider.serve(host.provider, person)
    const before = await signIn(host, host.browser(), { key })
    provider.serve(host.provider, { ...person, email: newPerson().email })
    const after = await signIn(host, host.browser(), { key })
    expect([before.status, after.status, after.body.user_id]).toEqual([200, 200, before.body.user_id])
  })

  const endpoints = ['token', ...(provider.profileEndpoint ? [provider.profileEndpoint] : [])] as const
  test.each(endpoints)('a %s endpoint that misbehaves is 502 OAUTH_ERROR, without a row', async (endpoint) => {
    const host = await hostOf(key, provider)
    provider.serve(host.provider, provider.somebody())
    const before = await rowCounts(host.knex)
    for (const [name, handler] of [...hostile, ['status 400', answer(400, { error: 'no' })] as const]) {
      host.provider.on(endpoint, handler)
      const { status, body } = await signIn(host, host.browser(), { key })
      expect({ name, status, code: body.code }).toEqual({ name, status: 502, code: 'OAUTH_ERROR' })
    }
    expect(await rowCounts(host.knex)).toEqual(before)
  })

  test('a profile without an id is 502, and never an account', async () => {
    const host = await hostOf(key, provider)
    for (const id of [undefined, null, '', {}, 'a\u0000b', 1.5]) {
      provider.serve(host.provider, { ...provider.somebody(), id, sub: id })
      const { status, body } = await signIn(host, host.browser(), { key })
      expect([id, status, body.code]).toEqual([id, 502, 'OAUTH_ERROR'])
    }
  })

  test('an access token in hand is taken where the provider says whose it is, and 501 elsewhere', async () => {
    const host = await hostOf(key, provider)
    const person = provider.somebody()
    provider.serve(host.provider, person)
    const inHand = async (access_token: string) => {
      const { status, body } = await host.browser().post(`/auth/oauth/${key}/token`).send({ access_token })
      return [status, body.code]
    }
    const token = host.provider.issueAccessToken({ profile: person })
    if (provider.takesAccessTokens) {
      expect([await inHand(token), await inHand('unknown')]).toEqual([
        [200, undefined],
        [401, 'OAUTH_TOKEN_REJECTED'],
      ])
      for (const status of [500, 503]) {
        host.provider.on('elsewhere', answer(status, {}))
        host.provider.on('introspect', answer(status, {}))
        expect(await inHand(token)).toEqual([502, 'OAUTH_PROVIDER_UNAVAILABLE'])
      }
    } else {
      expect([await inHand(token), host.provider.requests]).toEqual([[501, 'OAUTH_AUDIENCE_UNVERIFIABLE'], []])
    }
  })

  test('printing the client shows no secret, and an unknown option is refused at boot', async () => {
    const host = await hostOf(key, provider)
    expect(inspect(provider.client(host.provider), { depth: 9, showHidden: true, getters: true })).not.toContain(host.provider.clientSecret)
    const Client = provider.client(host.provider).constructor as new (options: object) => unknown
    expect(() => new Client({ clientId: 'a', clientSecret: 'b', tenants: [] })).toThrow(/unknown option tenants/)
    expect(() => new Client({ clientId: 'a', clientSecret: 'b', endpoints: { tokenUrl: 'http://id.example/token' } })).toThrow(
      /endpoints.tokenUrl/,
    )
  })
})
