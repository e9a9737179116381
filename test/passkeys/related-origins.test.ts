import express from 'express'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import type { VirtualAuthenticator } from '../../src/testing'
import { bearerOf, type LocalHost, post, signedIn } from '../local/people'
import { baseUrl } from '../support/app'
import { databases } from '../support/databases'
import { codeOf, newAuthenticator, onPasskeys, passkeyOwner, registrationOptions, rejected } from './people'

/** Section 30.4: other sites that may use the passkeys of this one. */

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPasskeys(database)

const shop = 'https://shop.example.org'
const rpId = new URL(baseUrl).hostname
const main = { webauthnOrigins: [shop, `https://www.${rpId}`, 'https://example.net'] }
const related = { oauthRedirectBaseUrl: shop, webauthnRpId: rpId, webauthnOrigins: [shop] }

/** The browser signs the origin of the page that it shows. */
async function logInAt(host: LocalHost, origin: string, authenticator: VirtualAuthenticator) {
  const { challenge_token, ...options } = (await post(host, '/passkeys/login/options', {})).body
  return post(host, '/passkeys/login', { credential: authenticator.get(options, { origin }), challenge_token })
}

describe('related origins', () => {
  test('a passkey that was made at one site signs in at the other, over one database', async () => {
    const [here, there] = [await start({ settings: main }), await start({ settings: related })]
    const owner = await passkeyOwner(here)
    expect((await logInAt(there, shop, owner.authenticator)).status).toBe(200)

    const person = await signedIn(there)
    const phone = newAuthenticator({ origin: shop })
    const { challenge_token, ...options } = await registrationOptions(there, person)
    expect(options.rp.id).toBe(rpId)
    const credential = phone.create(options)
    expect((await post(there, '/passkeys/register', { credential, challenge_token }, bearerOf(person))).status).toBe(201)
    expect((await logInAt(here, baseUrl, phone)).status).toBe(200)
    expect(codeOf(await logInAt(there, baseUrl, phone))).toEqual(rejected)
  })

  test.each([`${shop}.evil.test`, 'https://shop.example', 'http://shop.example.org', 'https://example.org'])(
    'an origin that is not in the list signs in nobody, and adds no passkey: %s',
    async (origin) => {
      const host = await start({ settings: main })
      const owner = await passkeyOwner(host)
      expect(codeOf(await logInAt(host, origin, owner.authenticator))).toEqual(rejected)
      const { challenge_token, ...options } = await registrationOptions(host, owner)
      const credential = newAuthenticator().create(options, { origin })
      const added = await post(host, '/passkeys/register', { credential, challenge_token }, bearerOf(owner))
      expect(codeOf(added)).toEqual([422, 'PASSKEY_INVALID'])
    },
  )

  test('auth.wellKnown lists the https origins that are neither the RP id nor below it, in their order', async () => {
    const host = await start({ settings: { ...main, pagesEnabled: false } })
    const { status, body, headers } = await supertest(express().use(host.auth.wellKnown)).get('/.well-known/webauthn')
    expect([status, body]).toEqual([200, { origins: [shop, 'https://example.net'] }])
    expect(headers['content-type']).toMatch(/^application\/json/)
    expect(headers['access-control-allow-origin']).toBeUndefined()
  })

  test.each([{ webauthnOrigins: [`https://www.${rpId}`] }, { ...main, passkeysEnabled: false }])(
    'without a related origin there is no list: %o',
    async (settings) => {
      const host = await start({ settings })
      expect((await supertest(express().use(host.auth.wellKnown)).get('/.well-known/webauthn')).status).toBe(404)
    },
  )

  test('a related origin may not send forms with cookies: it is not a trusted origin', async () => {
    const host = await start({ settings: { ...main, tokenDelivery: 'cookie' } })
    expect(codeOf(await post(host, '/logout', {}, { Origin: shop }))).toEqual([403, 'CSRF_VALIDATION_FAILED'])
  })

  test('boot refuses an http origin of another site, and an RP id of another site without publicUrl in the list', async () => {
    await expect(start({ settings: { webauthnOrigins: ['http://localhost:5173'] } })).rejects.toThrow(/webauthnOrigins .* http origin/)
    await expect(start({ settings: { webauthnOrigins: ['https://10.0.0.1'] } })).rejects.toThrow(/webauthnOrigins .* IP address/)
    await expect(start({ settings: { ...related, webauthnOrigins: [] } })).rejects.toThrow(
      /webauthnRpId .* add publicUrl to webauthnOrigins/,
    )
    await expect(start({ settings: { ...related, webauthnOrigins: ['https://example.net'] } })).rejects.toThrow(/webauthnRpId/)
  })

  test('boot lists the related origins, and warns where browsers cannot find the list or may stop reading it', async () => {
    const said = async (settings: object, level: string) =>
      (await start({ settings })).logs.entries.filter((line) => line.level === level && /related origins/.test(line.message))
    expect(await said(main, 'info')).toMatchObject([{ fields: { origins: [shop, 'https://example.net'] } }])
    expect(await said(main, 'warn')).toEqual([])
    expect(await said(related, 'warn')).toMatchObject([{ message: expect.stringContaining(`https://${rpId}/.well-known/webauthn`) }])
    const sites = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `https://www.${name}.co.uk`)
    expect(await said({ webauthnOrigins: sites }, 'warn')).toMatchObject([{ fields: { names: ['a', 'b', 'c', 'd', 'e', 'f'] } }])
    expect(await said({ webauthnOrigins: ['x', 'y', 'z', 'u', 'v', 'w'].map((part) => `https://${part}.a.co.uk`) }, 'warn')).toEqual([])
  })
})
