import { expect, test } from 'vitest'
import { OidcClient } from '../../src'
import { type LocalHost, onLocal } from '../local/people'
import { mfaSettings } from '../mfa/people'
import { databases } from '../support/databases'
import type { FakeProvider } from '../support/fake-provider'
import type { OpenApi, Operation } from '../support/openapi'
import { everything } from './configurations'
import { documentOf } from './document-of'
import { ways } from './ways'

/** Every host of the suite checks, when it is closed, that its document declares all that it answered (test/support/openapi.ts). */
const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onLocal(database)

const corp = (provider: FakeProvider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl }))

/** All routes, without the redirects that would stand in for answers. */
async function startAll(): Promise<{ host: LocalHost; operations: Map<string, Operation> }> {
  const host = await start({
    settings: { ...everything.settings, ...mfaSettings, oauthSuccessRedirect: null, oauthErrorRedirect: null },
    providers: { ...everything.providers, corp },
    options: {
      ...(everything.options?.loginTasks && { loginTasks: everything.options.loginTasks }),
      throttle: { routes: false, links: false, mail: false, login: false, signup: false, mfa: false },
    },
  })
  return { host, operations: operationsOf(await documentOf(host)) }
}

function operationsOf({ paths }: OpenApi): Map<string, Operation> {
  const named = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]): [string, Operation] => [`${method} ${path}`, operation]),
  )
  return new Map(named)
}

const isSuccess = (status: number) => status >= 200 && status < 400

test('every operation can be used, and answers as declared', async () => {
  const { host, operations } = await startAll()
  expect([...operations.keys()].sort()).toEqual(Object.keys(ways).sort())

  for (const [name, way] of Object.entries(ways)) {
    const { status, text } = await way(host)
    expect({ name, status, text: isSuccess(status) ? '' : text }).toEqual({ name, status: expect.toSatisfy(isSuccess), text: '' })
    expect(Object.keys(operations.get(name)?.responses ?? {})).toContain(String(status))
  }
}, 60_000) // one test goes through every operation

const nonsense: Readonly<Record<string, { headers?: Record<string, string>; body?: string }>> = {
  nothing: {},
  'no JSON': { headers: { 'Content-Type': 'text/plain' }, body: 'x' },
  'a list': { headers: { 'Content-Type': 'application/json' }, body: '[]' },
  'too much': { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token: 'x'.repeat(20_000) }) },
  'wrong credentials': {
    headers: { Authorization: 'Bearer wrong', Cookie: 'refresh_token=wrong; auth_session=wrong', 'Content-Type': 'application/json' },
    body: JSON.stringify({
      email: 'a@example.test',
      password: 'wrong',
      token: 'wrong',
      refresh_token: 'wrong',
      mfa_token: 'wrong',
      code: '1',
    }),
  },
  'another site': { headers: { Origin: 'https://elsewhere.example' } },
}

test('every operation that can refuse does so as declared, whatever is sent', async () => {
  const { host, operations } = await startAll()
  const refused = new Set<string>()

  for (const [name, { responses }] of operations) {
    const [method = '', path = ''] = name.split(' ')
    for (const segment of path.includes('{') ? ['corp', 'nobody', '%ff'] : ['']) {
      for (const { headers = {}, body } of Object.values(nonsense)) {
        const url = `${host.prefix}${path.replace(/\{\w+\}/, segment)}`
        const { status } = await host.browser()[method as 'post'](url).set(headers).send(body) // the four that there are
        expect(status).toBeLessThan(500)
        if (status >= 400) refused.add(name)
      }
    }
    if (!Object.keys(responses).some((status) => status.startsWith('4'))) refused.add(name)
  }

  expect([...refused].sort()).toEqual([...operations.keys()].sort())
}, 60_000)
