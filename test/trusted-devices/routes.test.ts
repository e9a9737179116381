import { describe, expect, test } from 'vitest'
import { type AuthStore, createAuthRouter, createKnexStore, purgeExpired } from '../../src'
import { bearerOf, type LocalHost, post } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { testSecret } from '../support/app'
import { databases } from '../support/databases'
import { dayMs, isTrusted, onTrust, send, trust, trusting, trustRows, unhurried } from './people'

const remove = (host: LocalHost, person: { token: string }, id: string) =>
  host.browser().delete(`/auth/trusted-devices/${id}`).set(bearerOf(person))

describe.each(await databases())('the routes of trusted devices on $name', (database) => {
  const { start } = onTrust(database)

  test('GET /trusted-devices lists the person’s own, newest first, and says which is that of the request', async () => {
    const host = await start()
    const [person] = [await trusting(host), await trusting(host)]
    host.clock.advance(60)
    const second = host.browser()
    await trust(second, person)
    const { status, body } = await person.browser.get('/auth/trusted-devices')
    const now = host.clock.now().getTime()
    const device = {
      id: expect.any(String),
      name: 'Firefox, Linux',
      created_at: new Date(now).toISOString(),
      last_used_at: null,
      ends_at: new Date(now + 30 * dayMs).toISOString(),
    }
    expect([status, body.length, body[0]]).toEqual([200, 2, { ...device, is_current: false }])
    expect(Object.keys(body[1])).toEqual(Object.keys(body[0]))
    expect([body[1].is_current, (await second.get('/auth/trusted-devices')).body[0].is_current]).toEqual([true, true])
    await isTrusted(person.browser, person)
    const [, used] = (await person.browser.get('/auth/trusted-devices')).body
    expect(used.last_used_at).toBe(host.clock.now().toISOString())
  })

  test('a trust that has ended is not listed', async () => {
    const host = await start()
    const person = await trusting(host)
    host.clock.advance(30 * 86_400 + 1)
    expect(await host.auth.service.listTrustedDevices(person.userId)).toEqual([])
  })

  test('DELETE /trusted-devices/:id removes one of the person’s own: 204, then 404; another person’s and no id are 404', async () => {
    const host = await start()
    const [person, other] = [await trusting(host), await trusting(host)]
    const [own] = await trustRows(host, person.userId)
    const [foreign] = await trustRows(host, other.userId)
    for (const id of [String(foreign?.id), 'x', '00000000-0000-4000-8000-000000000000'])
      expect([id, (await remove(host, person, id)).status]).toEqual([id, 404])
    expect((await remove(host, person, String(own?.id))).status).toBe(204)
    expect((await remove(host, person, String(own?.id))).body.code).toBe('NOT_FOUND')
    expect([await isTrusted(person.browser, person), await isTrusted(other.browser, other)]).toEqual([false, true])
  })

  test('of parallel removals of one device, one is 204', async () => {
    const host = await start()
    const person = await trusting(host)
    const [row] = await trustRows(host, person.userId)
    const answers = await Promise.all([1, 2, 3].map(() => remove(host, person, String(row?.id))))
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 404, 404])
  })

  test('the routes need a live session, and a removal of another site is refused', async () => {
    const host = await start()
    const person = await trusting(host)
    const [row] = await trustRows(host, person.userId)
    const path = `/auth/trusted-devices/${row?.id}`
    expect((await host.browser().get('/auth/trusted-devices')).status).toBe(401)
    expect((await host.browser().delete(path)).status).toBe(401)
    const foreign = await person.browser.delete(path).set('Origin', 'https://evil.example.test')
    expect([foreign.status, foreign.body.code]).toEqual([403, 'CSRF_VALIDATION_FAILED'])
    await host.auth.service.revokeSessions(person.userId)
    expect((await person.browser.get('/auth/trusted-devices')).status).toBe(401)
  })

  test('both routes count against the route limit trusted_devices', async () => {
    const host = await start({ options: { throttle: { ...unhurried, routes: { attempts: 2, windowSeconds: 60 } } } })
    const person = await trusting(host)
    const statuses = [
      (await person.browser.get('/auth/trusted-devices')).status,
      (await send(person.browser, '/trusted-devices/x')).status,
      (await person.browser.delete('/auth/trusted-devices/x')).status,
      (await person.browser.get('/auth/trusted-devices')).status,
    ]
    expect(statuses).toEqual([200, 405, 404, 429])
  })

  test('the service lists and removes, and says in words that the setting is 0', async () => {
    const host = await start()
    const person = await trusting(host)
    const [device] = await host.auth.service.listTrustedDevices(person.userId)
    expect(device).toMatchObject({ name: 'Firefox, Linux', lastUsedAt: null, isCurrent: false })
    await expect(host.auth.service.removeTrustedDevice(person.userId, 'x')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await host.auth.service.removeTrustedDevice(person.userId, String(device?.id))
    expect(await host.auth.service.listTrustedDevices(person.userId)).toEqual([])
    const off = await start({ settings: { trustedDeviceDays: 0 } })
    await expect(off.auth.service.listTrustedDevices(person.userId)).rejects.toThrow('trustedDeviceDays (AUTH_TRUSTED_DEVICE_DAYS) is 0')
    await expect(off.auth.service.removeTrustedDevice(person.userId, 'x')).rejects.toThrow('trustedDeviceDays')
  })

  test('auth.with trusts the browser of a form of the host, uses the trust, lists it and removes it', async () => {
    const said: Record<string, unknown>[] = []
    const host = await start({
      host: (app, auth) =>
        app.post('/form/:step', async (req, res) => {
          const bound = auth.with(req, res)
          const { step } = req.params
          const { email, password, mfaToken, code, id } = req.query as Record<string, string>
          if (step === 'login') said.push((await bound.logIn({ email: String(email), password: String(password) })) as never)
          if (step === 'verify')
            said.push((await bound.verifyMfa({ mfaToken: String(mfaToken), code: String(code), trustDevice: true })) as never)
          if (step === 'list') said.push(...((await bound.listTrustedDevices()) as never as Record<string, unknown>[]))
          if (step === 'remove') await bound.removeTrustedDevice(String(id))
          res.end()
        }),
    })
    const person = await enrolled(host)
    const browser = host.browser()
    const submit = (step: string, query: object = {}) =>
      browser.post(`/form/${step}`).query(query).set('Origin', 'https://app.example.test')
    const login = { email: person.email, password: 'a quiet harbour in winter' }
    await submit('login', login)
    await submit('verify', { mfaToken: said[0]?.['mfaToken'], code: person.app.nextCode() })
    await submit('login', login)
    await submit('list')
    expect(said.map(({ kind, deviceTrusted, newTrust, isCurrent }) => [kind, deviceTrusted, newTrust, isCurrent])).toEqual([
      ['challenge', undefined, undefined, undefined],
      ['session', true, undefined, undefined],
      ['session', undefined, undefined, undefined],
      [undefined, undefined, undefined, true],
    ])
    await submit('remove', { id: said[3]?.['id'] })
    expect(await trustRows(host, person.userId)).toEqual([])
  })

  test('a call of auth.service has no browser, so trustDevice trusts nothing', async () => {
    const host = await start()
    const person = await enrolled(host)
    const { body } = await post(host, '/login', { email: person.email, password: 'a quiet harbour in winter' })
    await host.auth.service.verifyMfa({ mfaToken: body.mfa_token, code: person.app.nextCode(), trustDevice: true })
    expect(await trustRows(host, person.userId)).toEqual([])
  })
})

describe('boot', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onTrust(sqlite)
  const boot = async (settings: object, change: (store: AuthStore) => AuthStore = (store) => store) => {
    const { knex } = await start()
    const given = {
      jwtSecret: testSecret,
      ...mfaSettings,
      tokenDelivery: 'cookie',
      trustedDeviceDays: 30,
      localAccountsEnabled: true,
      ...settings,
    }
    const mailer = { send: async () => undefined }
    return () =>
      createAuthRouter({
        settings: { publicUrl: 'https://app.example.test', backendLinks: true, ...given } as never,
        store: change(createKnexStore({ knex })),
        environment: 'test',
        mailer,
        logger: { info() {}, warn() {}, error() {} },
      })
  }

  test('accepts trustedDeviceDays in deliveries with cookies, with the second factor', async () => {
    for (const tokenDelivery of ['cookie', 'both', 'session']) expect(await boot({ tokenDelivery })).not.toThrow()
    for (const trustedDeviceDays of [0, 1, 90]) expect(await boot({ trustedDeviceDays })).not.toThrow()
    expect(await boot({ trustedDeviceDays: 0, tokenDelivery: 'bearer', mfaEnabled: false })).not.toThrow()
  })

  test.each([
    ['above 90', { trustedDeviceDays: 91 }, /trustedDeviceDays.*whole number from 0 to 90/],
    ['below 0', { trustedDeviceDays: -1 }, /trustedDeviceDays.*whole number from 0 to 90/],
    ['in delivery bearer', { tokenDelivery: 'bearer' }, /trustedDeviceDays \(AUTH_TRUSTED_DEVICE_DAYS\) needs tokenDelivery/],
    ['without mfaEnabled', { mfaEnabled: false }, /trustedDeviceDays \(AUTH_TRUSTED_DEVICE_DAYS\) needs mfaEnabled/],
  ])('refuses trustedDeviceDays %s', async (_name, settings, message) => {
    expect(await boot(settings)).toThrow(message)
  })

  test.each(['sessions', 'trustedDevices'] as const)('refuses trustedDeviceDays in a store without %s', async (table) => {
    const without = ({ [table]: _, ...store }: AuthStore) => store as AuthStore
    expect(await boot({}, without)).toThrow(new RegExp(`trustedDeviceDays.*wire \`${table}\``))
    expect(await boot({ trustedDeviceDays: 0 }, without)).not.toThrow()
  })

  test('checks the table only while the setting is on, and a store without the table works while it is off', async () => {
    const host = await start({ settings: { trustedDeviceDays: 0 } })
    await host.knex.schema.renameTable('auth_trusted_devices', 'auth_trusted_devices_away')
    try {
      const off = await start({ settings: { trustedDeviceDays: 0 } })
      await off.auth.ready()
      const person = await enrolled(off)
      await off.auth.service.revokeSessions(person.userId)
      expect(await purgeExpired(createKnexStore({ knex: off.knex }), { before: new Date(0) })).not.toHaveProperty('trustedDevices')
      const on = await start()
      await expect(on.auth.ready()).rejects.toThrow('1 migration is pending')
    } finally {
      await host.knex.schema.renameTable('auth_trusted_devices_away', 'auth_trusted_devices')
    }
  })
})
