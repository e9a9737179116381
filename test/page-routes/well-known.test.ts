import express from 'express'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import type { LocalOptions } from '../local/people'
import { passkeySettings } from '../passkeys/people'
import { databases } from '../support/databases'
import { onPages } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)
const paths = { change: '/.well-known/change-password', passkeys: '/.well-known/passkey-endpoints' }

describe('auth.wellKnown', () => {
  async function site(settings: NonNullable<LocalOptions['settings']>) {
    const host = await start({ settings })
    return supertest(express().use(host.auth.wellKnown))
  }

  test('leads to the page of the password, and names the pages of passkeys, by addresses that are complete', async () => {
    const root = await site(passkeySettings)
    const change = await root.get(paths.change)
    expect([change.status, change.headers['location']]).toEqual([302, 'https://app.example.test/auth/account/password'])
    const endpoints = await root.get(paths.passkeys)
    expect([endpoints.status, endpoints.body]).toEqual([
      200,
      {
        enroll: 'https://app.example.test/auth/account/security/passkeys/add',
        manage: 'https://app.example.test/auth/account/security',
      },
    ])
  })

  test('nobody is sent where the Host header says', async () => {
    const root = await site({ oauthRedirectBaseUrl: '', oauthEnabled: false })
    const { headers } = await root.get(paths.change).set('Host', 'evil.example')
    expect(headers['location']).toBe('/auth/account/password')
  })

  test('has no line for a page that is not there', async () => {
    const root = await site({})
    expect([(await root.get(paths.change)).status, (await root.get(paths.passkeys)).status]).toEqual([302, 404])
    const withoutPages = await site({ ...passkeySettings, pagesEnabled: false })
    expect([(await withoutPages.get(paths.change)).status, (await withoutPages.get(paths.passkeys)).status]).toEqual([404, 404])
    const withoutPasswords = await site({ localAccountsEnabled: false })
    expect((await withoutPasswords.get(paths.change)).status).toBe(404)
  })
})
