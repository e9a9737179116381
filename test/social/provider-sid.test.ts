import supertest from 'supertest'
import { expect, test } from 'vitest'
import { browse, enrolled, exchange } from '../oauth-code/apps'
import type { Mounted } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { begin, callBack, newPerson } from './redirect-steps'

const start = appPerTest()
const settings = { appRedirects: ['com.example.app:/signed-in'], mfaEnabled: true, mfaIssuer: 'Example' } as const

const sidsOf = async (host: Mounted) =>
  (await host.knex('auth_sessions').orderBy('created_at').select()).map(({ provider_sid: sid }: { provider_sid: string | null }) => sid)

test('a login by a provider stores the sid of its id_token, at the first login and later', async () => {
  const host = await start()
  const person = newPerson({ sid: 'first' })
  for (const profile of [person, { ...person, sid: 'second' }, { ...person, sid: undefined }, { ...person, sid: 7 }]) {
    host.clock.advance(1)
    const { query, cookie } = await begin(host, { profile })
    expect((await callBack(host, query, { cookie })).status).toBe(200)
  }

  expect(await sidsOf(host)).toEqual(['first', 'second', null, null])
})

test('the sid comes along through the code of an app and through a second factor', async () => {
  const host = await start({ settings })
  const { app, profile } = await enrolled(host)
  const { code, verifier } = await browse(host, { profile: { ...profile, sid: 'of-the-app' }, headers: {} })
  const { body } = await exchange(host, { code, verifier })
  const done = await supertest(host.app).post('/auth/mfa/verify').send({ mfa_token: body.mfa_token, code: app.nextCode() })

  expect(done.status, done.text).toBe(200)
  expect((await sidsOf(host)).at(-1)).toBe('of-the-app')
})
