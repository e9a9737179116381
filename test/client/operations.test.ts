import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { routes } from '../../src/client/routes'
import { operationsOf, table } from '../../src/client/table'
import { configurations, everything } from '../openapi/configurations'
import { documentOf } from '../openapi/document-of'
import { appPerTest } from '../support/app-per-test'
import type { OpenApi } from '../support/openapi'
import { adminOperations, everyOperation, operationsFile } from './operations-of'

const start = appPerTest()
// The methods take the token of a mailed link; codes beside links are typed on a page.
const everyRoute = () => {
  const settings = { ...everything.settings, oauthErrorRedirect: null, signupMode: 'approve', invitationsEnabled: true } as const
  return start({ ...everything, settings })
}

/** `npx vitest run --config test/vitest.config.mts test/client/operations.test.ts -u` writes the file anew. */
test('src/client/operations.ts has the types of the OpenAPI document', async () => {
  const file = join(import.meta.dirname, '../../src/client/operations.ts')
  const others = await Promise.all(Object.values(configurations).map(async (one) => documentOf(await start(one))))
  await expect(operationsFile(await documentOf(await everyRoute()), others)).toMatchFileSnapshot(file)
})

/** Routes without a method, and why. */
const others: Readonly<Record<string, string>> = {
  'GET /oauth/{provider}/login': 'providers.logIn navigates there',
  'GET /oauth/{provider}/callback': 'the provider sends the browser there',
  'POST /oauth/{provider}/callback': 'the provider sends the browser there',
  'POST /refresh': 'the client refreshes by itself',
  'GET /continue': 'for pages without script',
  'POST /activate/{token}': 'activate sends the token in the body',
  'POST /session/login': 'for apps whose delivery is not session',
  'POST /session/mfa/verify': 'for apps whose delivery is not session',
  'POST /session/passkeys/login': 'for apps whose delivery is not session',
  'GET /session/me': 'for apps whose delivery is not session',
  'GET /session/list': 'for apps whose delivery is not session',
  'POST /session/logout': 'for apps whose delivery is not session',
  'DELETE /session/{id}': 'for apps whose delivery is not session',
  'POST /session/tasks/device': 'for apps whose delivery is not session',
  'POST /session/tasks/device/resend': 'for apps whose delivery is not session',
  'POST /session/tasks/new-password': 'for apps whose delivery is not session',
  'POST /session/tasks/second-factor/enroll': 'for apps whose delivery is not session',
  'POST /session/tasks/second-factor/confirm': 'for apps whose delivery is not session',
  'GET /whoami': 'the client asks by itself',
  'GET /client-config': 'the client asks by itself',
  'GET /captcha': 'solveCaptcha of doorward/client/captcha asks there',
  'POST /signup/passkey/options': 'signing up with a passkey asks there',
  'GET /passkeys/signal': 'the client asks by itself after a login and after a change',
  'POST /reauthenticate/passkey/options': 'passkey: true asks there',
  'POST /mfa/passkey/options': 'passkey: true asks there',
  'POST /passkeys/login/options': 'passkeys.logIn asks there',
  'POST /passkeys/register/options': 'passkeys.register asks there',
  'GET /.well-known/jwks.json': 'for verifiers',
  'GET /.well-known/oauth-authorization-server': 'for verifiers',
  'GET /.well-known/openid-configuration': 'for verifiers',
  'GET /openapi.json': 'for developers',
}

test('every mounted route has a method or a reason, and every method has a route', async () => {
  const document = await documentOf(await everyRoute())
  const mounted = routesOf(document)
  const plain = new Set(mounted.map((route) => route.replace(' /cookie/', ' /')))
  const operations = [...everyOperation(), ...adminOperations()]
  const named = operations.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)

  expect([...plain].sort()).toEqual([...named, ...Object.keys(others)].sort())
  const withCookieRoute = operations.filter(({ method, path }) => mounted.includes(`${method} /cookie${path}`)).map(({ path }) => path)
  expect(operations.filter(({ flags }) => flags.includes('k')).map(({ path }) => path)).toEqual(withCookieRoute)
})

test('docs/client.md lists every method', () => {
  const text = readFileSync(join(import.meta.dirname, '../../docs/client.md'), 'utf8')
  const listed = Object.keys(table).flatMap((group) => {
    const [, names = ''] = new RegExp(`^\\| .*\`auth${group && '.'}${group}\`.* \\| (.*) \\|$`, 'm').exec(text) ?? []
    return [...names.matchAll(/`(\w+)`/g)].map(([, name]) => `${group}.${name}`)
  })
  const methods = Object.entries(table).flatMap(([group, lines]) => operationsOf(lines).map(([, name]) => `${group}.${name}`))
  expect(listed.sort()).toEqual([...methods, '.fetch', '.subscribe', '.state', '.dispose', 'providers.logIn'].sort())
})

test('routes.ts has the route of each operation of which the table has only the name, and no other', () => {
  const named = Object.entries(table).flatMap(([group, lines]) =>
    operationsOf(lines).flatMap(([, name, line]) => (line ? [] : [`${group}.${name}`])),
  )
  expect(Object.keys(routes)).toEqual(named)
})

test('each flag of a method is a fact of its route', async () => {
  const document = await documentOf(await everyRoute())
  const facts = everyOperation().map(({ name, method, path, flags }) => {
    const operation = (document.paths as Record<string, Record<string, object>>)[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
    const text = JSON.stringify((operation as { requestBody?: object }).requestBody ?? null)
    const answers = Object.entries((operation as { responses: object }).responses).filter(([status]) => status.startsWith('2'))
    const isLogin = /schemas\/(Login|Signup)(OrTasks)?"/.test(JSON.stringify(answers))
    const takes = (field: string) => text.includes(`"${field}"`)
    const expected = {
      r: isLogin,
      t: takes('refresh_token'),
      m: takes('mfa_token'),
      q: takes('request_token'),
      a: takes('signup_token'),
      x: takes('task_token'),
    }
    const actual = Object.fromEntries(Object.keys(expected).map((flag) => [flag, flags.includes(flag)]))
    return [
      [name, actual],
      [name, expected],
    ]
  })
  expect(facts.map(([actual]) => actual)).toEqual(facts.map(([, expected]) => expected))
})

function routesOf({ paths }: OpenApi): string[] {
  return Object.entries(paths).flatMap(([path, operations]) => Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`))
}
