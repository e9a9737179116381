import { afterEach, describe, expect, test } from 'vitest'
import { type Mounted, type MountOptions, mount, signIn } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'

describe.each(await databases())('on $name', (database) => {
  let opened: OpenDatabase
  let mounted: Mounted

  async function start(options: Omit<MountOptions, 'knex'> = {}): Promise<Mounted> {
    opened = await database.open()
    mounted = await mount({ knex: opened.knex, ...options })
    return mounted
  }

  afterEach(async () => {
    await mounted.close()
    await opened.close()
  })

  test('a person signs in, is in the host’s database with the identity, and passes the guard', async () => {
    const { auth, knex, provider, browser, prefix } = await start({
      host: (app, auth) => app.get('/api/hello', auth.guards.requireAuth(), (_req, res) => void res.json({ hello: 'there' })),
    })
    provider.profile = { sub: 'S-1', email: 'Ana@Example.test', email_verified: true, name: 'Ana' }
    const person = browser()

    const response = await signIn(mounted, person)

    expect(response.status, response.text).toBe(200)
    expect(response.body).toEqual({
      user_id: expect.any(String),
      access_token: expect.any(String),
      refresh_token: expect.any(String),
      mfa_required: false,
      mfa_token: null,
    })
    expect(await knex('auth_users').select('email', 'name')).toEqual([{ email: 'ana@example.test', name: 'Ana' }])
    expect(await knex('auth_identities').select('provider', 'subject')).toEqual([{ provider: 'corp', subject: 'S-1' }])
    const bearer = `Bearer ${response.body.access_token}`
    expect((await person.get('/api/hello')).status).toBe(401)
    expect((await person.get('/api/hello').set('Authorization', bearer)).body).toEqual({ hello: 'there' })
    const me = await person.get(`${prefix}/me`).set('Authorization', bearer)
    expect(me.body).toMatchObject({
      id: response.body.user_id,
      email: 'ana@example.test',
      name: 'Ana',
      is_active: true,
      mfa_enabled: false,
    })
    const accounts = await person.get(`${prefix}/oauth/accounts`).set('Authorization', bearer)
    expect(accounts.body).toMatchObject([{ provider: 'corp', subject: 'S-1', email: 'ana@example.test', email_verified: true }])
    const refreshed = await person.post(`${prefix}/refresh`).send({ refresh_token: response.body.refresh_token })
    expect(refreshed.status, refreshed.text).toBe(200)
    expect((await person.post(`${prefix}/logout`).send({ refresh_token: refreshed.body.refresh_token })).status).toBe(204)
    expect((await person.post(`${prefix}/refresh`).send({ refresh_token: refreshed.body.refresh_token })).status).toBe(401)
    expect(auth.service).toBeDefined()
  })
})
