import fc from 'fast-check'
import type Joi from 'joi'
import { type Body, type Damage, Live, type LiveKind, liveKinds, quirks, type Text, type Twist, type Wish } from './wish'

/** The part of a route that says what it is asked with. */
export interface FuzzedRoute {
  readonly method: string
  readonly path: string
  readonly body?: Joi.ObjectSchema
  /** It answers some of the requests of its path: forms. */
  readonly when?: unknown
}

/** Wishes for these routes, all of them equally often. `byCookie`: how somebody is mostly signed in. */
export function wishes(routes: readonly FuzzedRoute[], { byCookie }: { byCookie: boolean }): fc.Arbitrary<Wish> {
  return fc.oneof(...routes.map((route) => wishFor(route, byCookie || route.path.startsWith('/cookie'))))
}

// ---- text ------------------------------------------------------------------------------------------------------------

const nasty = fc.constantFrom(
  ...['', ' ', '\0', 'a\0b', '\ud800', '\udfff\ud800', '\u202eevil', 'İıſ', 'é', 'e\u0301', '🙂'.repeat(40), '\ufeff', '\u2028'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'undefined', 'null', 'NaN', '-0', '1e999', '0x10', 'true'],
  ...["' or 1=1 --", '"; drop table auth_users; --', '%', '_', '%00', '%ff%fe', '../../etc/passwd', '{"$gt":""}', '[object Object]'],
  ...['j:{"a":1}', 's:a.b', 'a=b; c=d', '\r\nSet-Cookie: a=b', '<script>alert(1)</script>', '{{7*7}}', '\\', '\u001b[31m'],
  ...['a'.repeat(255), 'a'.repeat(4_097), `${'a'.repeat(310)}@example.test`, '+5', '１２３４５６', '000000', '+00000', ' 123 456 '],
)
const anyText = fc.oneof(nasty, fc.string({ maxLength: 40 }), fc.string({ unit: 'binary', maxLength: 40 }), fc.uuid(), fc.emailAddress())

const damage: fc.Arbitrary<Damage> = fc.oneof(
  fc.record({ do: fc.constant('flip' as const), at: fc.nat(600), to: fc.constantFrom('A', '0', '-', '.', '=', '\0', 'é', '%') }),
  fc.record({ do: fc.constant('cut' as const), at: fc.nat(600) }),
  fc.record({ do: fc.constant('insert' as const), at: fc.nat(600), text: nasty }),
  fc.record({ do: fc.constant('repeat' as const) }),
  fc.record({ do: fc.constant('case' as const) }),
  fc.record({
    do: fc.constant('part' as const),
    part: fc.nat(2),
    json: fc.oneof(
      fc.constantFrom('{"alg":"none"}', '{"alg":"HS256","kid":"../x"}', '{"sub":{}}', '[]', 'null', '{"exp":1e999}', '{"amr":"otp"}', '{'),
      fc.json({ maxDepth: 2 }),
    ),
  }),
)

/** Mostly one's own and whole. */
function live(what: LiveKind): fc.Arbitrary<Live> {
  const neighbour = fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(9) })
  const harm = fc.oneof({ weight: 12, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: damage })
  return fc.tuple(neighbour, harm).map(([who, how]) => new Live(what, who, how))
}

const anyLive = fc.constantFrom(...liveKinds).chain(live)
const freshEmail = fc.nat(1_000_000).map((number) => `fresh-${number}@example.test`)

/** Mostly what belongs there. */
function mostly<T>(right: fc.Arbitrary<T>, wrong: fc.Arbitrary<T>, weight = 9): fc.Arbitrary<T> {
  return fc.oneof({ weight, arbitrary: right }, { weight: 1, arbitrary: wrong })
}

const text = (right: fc.Arbitrary<Text>): fc.Arbitrary<Text> => mostly(right, fc.oneof(anyText, anyLive) as fc.Arbitrary<Text>)

// ---- bodies ----------------------------------------------------------------------------------------------------------

/** What a field of that name is for. */
const meaning: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  email: mostly<Text>(live('email'), freshEmail, 2),
  new_email: freshEmail,
  password: live('password'),
  current_password: live('password'),
  new_password: fc.constantFrom('nine green bicycles uphill', 'seven blue kettles at dawn', 'short'),
  confirm_password: fc.constant('nine green bicycles uphill'),
  token: live('link'),
  refresh_token: live('refresh'),
  mfa_token: live('challenge'),
  code: fc.oneof({ weight: 4, arbitrary: live('code') }, { weight: 1, arbitrary: live('recovery') }),
  email_code: live('mailedCode'),
  ticket: live('ticket'),
  access_token: live('providerToken'),
  provider: fc.constantFrom('corp', 'corp', 'corp', 'hub'),
  name: fc.constantFrom('Ana', 'Zoë 🙂', null),
}

const wrongType = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 1e308, [], {}, [''], [[]], { length: 1 }, { toString: 'x' }, { valueOf: null }),
  anyText,
  anyLive,
  fc.array(anyText, { maxLength: 3 }),
  fc.jsonValue({ maxDepth: 3 }),
)

function field(name: string, type: unknown): fc.Arbitrary<unknown> {
  const right = Object.hasOwn(meaning, name) ? meaning[name] : type === 'boolean' ? fc.boolean() : anyText
  return mostly(right ?? anyText, wrongType, 14)
}

const twists: readonly Twist[] = ['prototype keys', 'keys twice', 'cut', 'deep', 'huge', 'byte order mark', 'utf-16']

function bodyFor({ method, path, body, when }: FuzzedRoute): fc.Arbitrary<Body> {
  const keys = (body?.describe() as { keys?: Record<string, { type?: unknown; flags?: { presence?: string } }> } | undefined)?.keys ?? {}
  const names = Object.keys(keys)
  const fields = Object.fromEntries(names.map((name) => [name, field(name, keys[name]?.type)]))
  const required = names.filter((name) => keys[name]?.flags?.presence !== 'optional')
  const optional = names.filter((name) => !required.includes(name))
  const any = mostly(fc.record(fields, { requiredKeys: required }), fc.record(fields, { requiredKeys: [] }), 12)
  const whole = fc.oneof({ weight: 2, arbitrary: plainBody(fields, required, optional) }, { weight: 1, arbitrary: any })
  const stranger = fc.record({ is_admin: fc.constant(true), hashed_password: anyText, id: anyText, refresh_token: live('refresh') })
  const value = fc.oneof(
    { weight: 14, arbitrary: whole as fc.Arbitrary<unknown> },
    { weight: 1, arbitrary: fc.tuple(whole, stranger).map(([own, other]) => ({ ...other, ...own })) },
    { weight: 1, arbitrary: wrongType },
  )
  const twist = fc.oneof({ weight: 14, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.constantFrom(...twists) })
  const json = fc.record({ kind: fc.constant('json' as const), value, twist })
  const form = fc.record({ kind: fc.constant('form' as const), fields: formFields(path, names) })
  const none = fc.constant<Body>({ kind: 'none' })
  const others = fc.oneof(
    none,
    fc.record({ kind: fc.constant('text' as const), text: anyText }),
    fc.record({ kind: fc.constant('bytes' as const), bytes: fc.uint8Array({ maxLength: 64 }) }),
    form,
  )
  if (method === 'GET' || method === 'DELETE') return mostly<Body>(none, fc.oneof(json, others), 20)
  const takesForms = when !== undefined || (body === undefined && path.endsWith(':token'))
  return fc.oneof(
    { weight: takesForms ? 1 : 30, arbitrary: json as fc.Arbitrary<Body> },
    { weight: takesForms ? 30 : 1, arbitrary: form },
    { weight: 1, arbitrary: others },
  )
}

/** Of what may be left out, one thing or nothing: credentials often stand for one another, and each that is wrong is refused. */
function plainBody(fields: Record<string, fc.Arbitrary<unknown>>, required: readonly string[], optional: readonly string[]) {
  return fc
    .constantFrom([], ...optional.map((name) => [name]))
    .chain((more) => fc.record(Object.fromEntries([...required, ...more].map((name) => [name, fields[name] ?? anyText]))))
}

function formFields(path: string, names: readonly string[]): fc.Arbitrary<{ name: string; value: Text }[]> {
  const asked = path.endsWith(':token') ? ['new_password', 'confirm_password'] : names
  const each = asked.map((name) => ({ name: fc.constant(name), value: text(field(name, 'string') as fc.Arbitrary<Text>) }))
  const own = fc.tuple(...each.map((pair) => fc.record(pair)))
  const same = fc.constant(asked.map((name) => ({ name, value: 'nine green bicycles uphill' as Text })))
  const more = fc.array(
    fc.record({ name: mostly<string>(fc.constantFrom(...asked, '__proto__', 'a[b]', 'a[]'), anyText, 3), value: anyText }),
  )
  const first = path.endsWith(':token') ? fc.oneof(same, own) : own
  return fc.oneof({ weight: 5, arbitrary: first }, { weight: 1, arbitrary: fc.tuple(first, more).map((lists) => lists.flat()) })
}

// ---- path and query --------------------------------------------------------------------------------------------------

const wildSegment = fc.oneof(
  fc.constantFrom(...['%', '%zz', '%E0%A4', '%C0%AF', '%00', '..', '%2e%2e', '%2F', '.', '', '%F0%9F%98', ';a=b', '*', '(', ':id', '%25']),
  fc.constantFrom('request', 'confirm', 'verify', 'me', 'list', 'logout', 'accounts', '__proto__', 'constructor', 'a'.repeat(3_000)),
)

function parameter(name: string, path: string): fc.Arbitrary<Text> {
  if (name === 'token') return live('link')
  if (name === 'id') return path.startsWith('/session') ? live('sessionId') : fc.nat(9).map((who) => new Live('userId', who, null))
  return path.endsWith('/token') ? fc.constantFrom('introspecting', 'asking', 'hub') : fc.constantFrom('corp', 'corp', 'corp', 'hub')
}

function parametersOf(path: string): fc.Arbitrary<Wish['parameters']> {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  const right = (name: string) => fc.record({ value: parameter(name, path), raw: fc.constant(false) })
  const wrong = fc.oneof(
    fc.record({ value: fc.oneof(anyText, anyLive) as fc.Arbitrary<Text>, raw: fc.constant(false) }),
    fc.record({ value: wildSegment as fc.Arbitrary<Text>, raw: fc.constant(true) }),
  )
  return fc.tuple(...names.map((name) => mostly(right(name), wrong, 12)))
}

const filterNames = ['id', 'email', 'name', 'is_active', 'is_admin', 'created_at', 'last_login_at', 'mfa_enabled', 'hashed_password']
const operators = [
  '',
  '__ne',
  '__gt',
  '__lte',
  '__in',
  '__not_in',
  '__between',
  '__isnull',
  '__contains',
  '__icontains',
  '__startswith',
  '__x',
]
const filterValues = ['true', 'false', '2026-01-01', '2026-02-30', '2026-01-01T00:00:00Z,2027-01-01', 'a,b', 'a', ',', '%', '\\', '1']
const filters = fc.record({
  name: fc.tuple(fc.constantFrom(...filterNames), fc.constantFrom(...operators)).map((parts) => parts.join('')),
  value: fc.oneof(fc.constantFrom<Text>(...filterValues), anyText as fc.Arbitrary<Text>),
})
const paging = fc.oneof(
  fc.record({ name: fc.constant('cursor'), value: live('cursor') as fc.Arbitrary<Text> }),
  fc.record({ name: fc.constant('limit'), value: fc.constantFrom<Text>('1', '2', '100', '101', '0', '-1', '1e1', '') }),
)
const queryNames = ['code', 'state', 'iss', 'error', 'error_description', 'lang', 'cursor', 'limit', 'next', 'redirect_uri', 'access_token']
const strangeNames = ['state[]', 'state[a]', 'code[__proto__][x]', '__proto__', 'constructor[prototype][polluted]', 'a[b][c][d]', '']
const anyPair = fc.record({
  name: fc.constantFrom(...queryNames, ...strangeNames),
  value: fc.oneof(anyText, anyLive) as fc.Arbitrary<Text>,
})
const wildPair = fc.record({
  name: fc.constantFrom('%', '%zz', 'a%00', '&&', '=', '?', '#a'),
  value: fc.constantFrom<Text>('%', '%E0%A4', '+', '&'),
})

function queryOf(path: string): fc.Arbitrary<Wish['query']> {
  const own = path.endsWith('/callback') ? callbackQuery : path === '/admin/users' ? listQuery : fc.constant<Pair[]>([])
  const extra = fc.array(
    fc.oneof(
      { weight: 5, arbitrary: anyPair.map((pair) => ({ ...pair, raw: false })) },
      { weight: 1, arbitrary: wildPair.map((pair) => ({ ...pair, raw: true })) },
    ),
    { maxLength: 4 },
  )
  return fc
    .tuple(own, mostly(fc.constant<Wish['query']>([]), extra, 6))
    .map(([pairs, more]) => [...pairs.map((p) => ({ ...p, raw: false })), ...more])
}

interface Pair {
  name: string
  value: Text
}

const callbackQuery: fc.Arbitrary<Pair[]> = mostly<Pair[]>(
  fc.tuple(
    fc.record({ name: fc.constant('state'), value: live('state') as fc.Arbitrary<Text> }),
    fc.record({ name: fc.constant('code'), value: live('providerCode') as fc.Arbitrary<Text> }),
  ),
  fc.array(anyPair, { maxLength: 3 }),
  6,
)
const goodFilters = fc.constantFrom<Pair[]>(
  [],
  [{ name: 'email__contains', value: 'example' }],
  [{ name: 'is_active', value: 'true' }],
  [{ name: 'created_at__between', value: '2026-01-01T00:00:00Z,2027-01-01' }],
  [{ name: 'limit', value: '2' }],
)
const listQuery: fc.Arbitrary<Pair[]> = fc.oneof(goodFilters, fc.array(fc.oneof(filters, paging), { maxLength: 3 }))

// ---- headers ---------------------------------------------------------------------------------------------------------

const header = fc.oneof(
  ...(
    [
      ['Accept', ['text/html', 'application/json', '*/*', ';q=', 'text/html;q=2, a/b;q=x']],
      ['Accept-Language', ['pt-BR', 'en;q=0', 'pt;q=0.1,en', ',,,;q=', `${'x-y,'.repeat(300)}pt`, '__proto__']],
      ['Origin', ['https://app.example.test', 'https://evil.test', 'null', 'a', 'https://app.example.test, https://evil.test']],
      ['Sec-Fetch-Site', ['same-origin', 'same-site', 'cross-site', 'none', 'x']],
      ['User-Agent', ['fuzz', 'a'.repeat(600), 'é ü', '<script>']],
      ['Host', ['evil.test', 'a b', 'x:99999', '']],
      ['X-Forwarded-For', ['203.0.113.7', '::1, 2001:db8::1', '::ffff:1.2.3.4', 'unknown', 'a'.repeat(500), '1.2.3.4:80', ',,']],
      ['X-Forwarded-Host', ['evil.test']],
      ['X-Forwarded-Proto', ['https', 'javascript']],
      ['X-HTTP-Method-Override', ['DELETE', 'x']],
      ['Content-Encoding', ['gzip', 'br', 'identity', 'deflate', 'x']],
      ['If-None-Match', ['*', 'W/"a"']],
      ['Range', ['bytes=0-1', 'bytes=-']],
      [
        'Authorization',
        ['Bearer', 'Bearer ', 'Basic YTpi', 'bearer a b', 'Bearer a,Bearer b', 'DPoP x', 'Bearer null', `Bearer ${'a'.repeat(9_000)}`],
      ],
      [
        'Cookie',
        ['access_token', '=', ';;;', 'auth_session=a; auth_session=b', 'oauth_state=j:{}', 'oauth_state=s:a.b', '__proto__=a', '%=%'],
      ],
      ['Idempotency-Key', ['a', 'a'.repeat(300), 'é']],
      [
        'Content-Type',
        ['application/json; charset=utf-16', 'application/json;charset=x', 'text/plain', 'application/jsonx', 'multipart/form-data'],
      ],
    ] as const
  ).map(([name, values]) => fc.record({ name: fc.constant<string>(name), value: mostly<string>(fc.constantFrom(...values), anyText, 5) })),
)

const contentTypes = ['application/json', 'application/json; charset=utf-8', 'APPLICATION/JSON', 'application/x-www-form-urlencoded']

/** Signed in by one way, by several, or not at all. */
function credentialsOf(path: string, byCookie: boolean): fc.Arbitrary<{ bearer: Text; cookies: Pair[] }> {
  const nothing = { bearer: fc.constant<Text>(''), cookies: fc.constant<Pair[]>([]) }
  const bearer = live('access') as fc.Arbitrary<Text>
  const jar = cookieJar(['access_token', 'access'], ['refresh_token', 'refresh'])
  return fc.oneof(
    { weight: byCookie ? 1 : 14, arbitrary: fc.record({ ...nothing, bearer }) },
    { weight: byCookie ? 14 : 1, arbitrary: fc.record({ ...nothing, cookies: jar }) },
    { weight: isWithoutTokens(path) ? 20 : 1, arbitrary: fc.record(nothing) },
    { weight: 1, arbitrary: fc.record({ bearer: fc.oneof(anyLive, anyText) as fc.Arbitrary<Text>, cookies: anyCookies() }) },
  )
}

/** Server-side sessions have a cookie of their own, and the provider may send a browser back that has no session any more. */
function isWithoutTokens(path: string): boolean {
  return path.startsWith('/session/') || path.endsWith('/callback')
}

function cookieJar(...jar: [name: string, what: LiveKind][]): fc.Arbitrary<Pair[]> {
  return fc.tuple(...jar.map(([name, what]) => fc.record({ name: fc.constant(name), value: live(what) as fc.Arbitrary<Text> })))
}

function anyCookies(): fc.Arbitrary<Pair[]> {
  const name = fc.constantFrom('access_token', 'refresh_token', 'auth_session', 'oauth_state', '__proto__', 'a', '')
  return fc.array(fc.record({ name, value: fc.oneof(anyLive, anyText) as fc.Arbitrary<Text> }), { maxLength: 4 })
}

function cookiesOf(path: string): fc.Arbitrary<Pair[]> {
  if (path.startsWith('/session/') || path === '/host/session') return cookieJar(['auth_session', 'session'])
  return path.endsWith('/callback') ? cookieJar(['oauth_state', 'stateCookie']) : fc.constant([])
}

// ---- the whole -------------------------------------------------------------------------------------------------------

function wishFor(route: FuzzedRoute, byCookie: boolean): fc.Arbitrary<Wish> {
  const { method, path } = route
  const strange = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND')
  const parts = {
    method: mostly<string>(fc.constant(method), strange, 30),
    parameters: parametersOf(path),
    query: queryOf(path),
    credentials: credentialsOf(path, byCookie),
    ownCookies: mostly(cookiesOf(path), anyCookies(), 9),
    headers: mostly(fc.constant<{ name: string; value: string }[]>([]), fc.array(header, { maxLength: 4 }), 3),
    type: mostly<string>(fc.constant(''), fc.constantFrom(...contentTypes), 20),
    body: bodyFor(route),
    persona: fc.nat(999),
    quirk: mostly<Wish['quirk']>(fc.constant(null), fc.constantFrom(...quirks), 60),
  }
  return fc.record(parts).map(({ credentials: { bearer, cookies }, ownCookies, type, headers, ...rest }) => {
    const authorization = bearer === '' ? [] : [{ name: 'Authorization', value: bearer }]
    const contentType = type === '' ? [] : [{ name: 'Content-Type', value: type }]
    return { ...rest, path, cookies: [...cookies, ...ownCookies], headers: [...authorization, ...contentType, ...headers] }
  })
}
