import { connect } from 'node:net'
import { Pool } from 'undici'
import type { FuzzHost, Persona } from './fuzz-host'
import { type Body, damaged, Live, type LiveKind, type Quirk, type Twist, type Wish } from './wish'

export interface Asked {
  method: string
  target: string
  headers: [name: string, value: string][]
  body: Buffer | null
  quirk: Quirk | null
}

export interface Answered {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

/** A form's field may be wished to be no text at all. */
type Fill = (value: unknown) => string

/** The wish with everybody's values of this moment in it. */
export function askedFor(wish: Wish, personas: readonly Persona[]): Asked {
  const fill = (value: unknown) =>
    value instanceof Live ? lived(value, wish, personas) : typeof value === 'string' ? value : JSON.stringify(value)
  const query = wish.query.map(({ name, value, raw }) => (raw ? `${name}=${fill(value)}` : `${escaped(name)}=${escaped(fill(value))}`))
  const cookies = wish.cookies.map(({ name, value }) => `${name}=${escaped(fill(value))}`)
  const { type, bytes } = written(wish.body, fill)
  const headers = wish.headers.map(({ name, value }): [string, string] => [name, headerText(credential(name, fill(value)))])
  if (cookies.length > 0) headers.push(['Cookie', headerText(cookies.join('; '))])
  if (type !== null && !headers.some(([name]) => name === 'Content-Type')) headers.push(['Content-Type', type])
  const hosts = headers.filter(([name]) => name === 'Host') // a client of HTTP sends one, or none
  for (const extra of hosts.slice(1)) headers.splice(headers.indexOf(extra), 1)
  const target = targetText(`/auth${pathOf(wish, fill)}${query.length > 0 ? `?${query.join('&')}` : ''}`)
  return { method: wish.method, target, headers, body: bytes, quirk: wish.quirk }
}

function lived({ what, neighbour, damage }: Live, { persona, path }: Wish, personas: readonly Persona[]): string {
  const who = personas[(persona + neighbour) % personas.length]
  return damaged(valueOfKind(what, path, who, personas) ?? `no-${what}`, damage)
}

function valueOfKind(what: LiveKind, path: string, who: Persona | undefined, personas: readonly Persona[]): string | undefined {
  if (what === 'link') return linkFor(path, who, personas)
  if (what === 'code') return who?.app?.code() ?? '000000'
  const values = who?.[what]
  return what === 'recovery' ? values?.pop() : values?.at(-1)
}

/** The link a route is for, of whoever has one. */
function linkFor(path: string, who: Persona | undefined, personas: readonly Persona[]): string | undefined {
  const purpose = path.split('/').find((segment) => segment === 'activate' || segment.includes('-')) ?? ''
  return who?.links[purpose] || personas.find(({ links }) => links[purpose])?.links[purpose]
}

function credential(name: string, value: string): string {
  return name === 'Authorization' && /^[\w-]+\.[\w-]+\.|^no-/.test(value) ? `Bearer ${value}` : value
}

function pathOf({ path, parameters }: Wish, fill: Fill): string {
  let next = 0
  return path.replace(/:\w+/g, () => {
    const { value, raw } = parameters[next++] ?? { value: '', raw: true }
    return raw ? fill(value) : escaped(fill(value))
  })
}

function escaped(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}

/** As bytes of UTF-8, one character each, and without what ends a header. */
function headerText(text: string): string {
  return Buffer.from(text, 'utf8')
    .toString('latin1')
    .replace(/[^\t\x20-\x7e\x80-\xff]/g, '?')
}

function targetText(text: string): string {
  return Buffer.from(text, 'utf8')
    .toString('latin1')
    .replace(/[^\x21-\xff]/g, (character) => escaped(character))
}

// ---- bodies ----------------------------------------------------------------------------------------------------------

function written(body: Body, fill: Fill): { type: string | null; bytes: Buffer | null } {
  switch (body.kind) {
    case 'none':
      return { type: null, bytes: null }
    case 'json':
      return { type: 'application/json', bytes: jsonBytes(JSON.stringify(filled(body.value, fill)) ?? 'null', body.twist) }
    case 'form': {
      const fields = body.fields.map(({ name, value }) => `${escaped(name)}=${escaped(fill(value))}`)
      return { type: 'application/x-www-form-urlencoded', bytes: Buffer.from(fields.join('&')) }
    }
    case 'text':
      return { type: 'text/plain', bytes: Buffer.from(body.text) }
    case 'bytes':
      return { type: 'application/json', bytes: Buffer.from(body.bytes) }
  }
}

function filled(value: unknown, fill: Fill): unknown {
  if (value instanceof Live) return fill(value)
  if (Array.isArray(value)) return value.map((item) => filled(item, fill))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, fill)]))
}

function jsonBytes(json: string, twist: Twist | null): Buffer {
  const isObject = json.startsWith('{') && json.length > 2
  switch (twist) {
    case null:
      return Buffer.from(json)
    case 'prototype keys': {
      const more = '{"__proto__":{"polluted":1,"isAdmin":true},"constructor":{"prototype":{"polluted":1}},"toString":1'
      return Buffer.from(isObject ? `${more},${json.slice(1)}` : `${more}}`)
    }
    case 'keys twice':
      return Buffer.from(isObject ? `${json.slice(0, -1)},${json.slice(1)}` : json + json)
    case 'cut':
      return Buffer.from(json.slice(0, Math.ceil(json.length / 2)))
    case 'deep':
      return Buffer.from(`${'{"a":['.repeat(1_200)}${json}${']}'.repeat(1_200)}`)
    case 'huge':
      return Buffer.from(isObject ? `{"padding":"${'x'.repeat(20_000)}",${json.slice(1)}` : JSON.stringify('x'.repeat(20_000)))
    case 'byte order mark':
      return Buffer.from(`\ufeff${json}`)
    case 'utf-16':
      return Buffer.from(json, 'utf16le')
  }
}

// ---- the wire --------------------------------------------------------------------------------------------------------

/** Longer than our own deadline for a body that does not come. */
const hungAfterMs = 25_000

export function poolTo(origin: string): Pool {
  return new Pool(origin, { connections: 8, pipelining: 1, headersTimeout: hungAfterMs, bodyTimeout: hungAfterMs })
}

/** Null: a broken request that a server may leave without an answer. */
export function send(pool: Pool, { port }: FuzzHost, asked: Asked): Promise<Answered | null> {
  return asked.quirk === null ? sendWhole(pool, asked) : sendRaw(port, asked, asked.quirk)
}

async function sendWhole(pool: Pool, { method, target, headers, body }: Asked): Promise<Answered> {
  const response = await pool.request({ method: method as 'GET', path: target, headers: headers.flat(), body }) // any method's name
  return { status: response.statusCode, headers: response.headers, text: await response.body.text() }
}

/** One connection, these bytes, and what comes back until the server ends it. */
function sendRaw(port: number, asked: Asked, quirk: Quirk): Promise<Answered | null> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' })
    const chunks: Buffer[] = []
    const isShort = unanswered.has(quirk)
    socket.setTimeout(isShort ? 30 : hungAfterMs, () => (isShort ? socket.destroy() : socket.destroy(new Error('no answer in time'))))
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' || error.code === 'EPIPE' ? undefined : reject(error),
    )
    socket.on('close', () => resolve(parsed(Buffer.concat(chunks).toString('latin1'))))
    socket.write(rawBytes(asked, quirk))
  })
}

/** What leaves the server waiting for more. */
const unanswered: ReadonlySet<Quirk> = new Set<Quirk>(['length too large', 'half a request', 'broken chunks'])

function rawBytes({ method, target, headers, body }: Asked, quirk: Quirk): Buffer {
  const length = body?.length ?? 0
  const lines = [
    ['Host', 'localhost'],
    ['Connection', 'close'],
    ...headers.filter(([name]) => name !== 'Host'),
    ['Content-Length', String(length)],
  ]
  const set = (name: string, ...values: string[]) => {
    const others = lines.filter(([other]) => other !== name)
    lines.splice(0, lines.length, ...others, ...values.map((value) => [name, value]))
  }
  const version = quirk === 'HTTP/1.0' || quirk === 'HTTP/9.9' ? quirk : 'HTTP/1.1'
  let line = `${method} ${target} ${version}`
  let end = body ?? Buffer.alloc(0)
  switch (quirk) {
    case 'length too large':
      set('Content-Length', String(length + 100))
      break
    case 'length too small':
      set('Content-Length', String(Math.max(0, length - 3)))
      break
    case 'length negative':
      set('Content-Length', '-1')
      break
    case 'length twice':
      set('Content-Length', String(length), String(length + 1))
      break
    case 'length and chunks':
      lines.push(['Transfer-Encoding', 'chunked'])
      break
    case 'broken chunks':
      set('Content-Length')
      lines.push(['Transfer-Encoding', 'chunked'])
      end = Buffer.concat([Buffer.from('zz\r\n'), end])
      break
    case 'control characters in a header':
      lines.push(['X-Odd', 'a\0b\u0007'])
      break
    case 'a header without a colon':
      lines.push(['X-Odd\r\nwithout a colon', ''])
      break
    case 'a folded header':
      lines.push(['Accept-Language', 'en\r\n pt-BR'])
      break
    case 'a flood of headers':
      for (let index = 0; index < 300; index++) lines.push([`X-${index}`, 'y'.repeat(20)])
      break
    case 'no host':
      set('Host')
      break
    case 'a host that is none':
      set('Host', '[::1')
      break
    case 'a target in absolute form':
      line = `${method} http://evil.test${target} HTTP/1.1`
      break
    case 'a target with blanks':
      line = `${method} ${target} and more HTTP/1.1`
      break
    case 'half a request':
      return Buffer.from(`${line}\r\nHost: local`, 'latin1')
    default:
  }
  const head = `${line}\r\n${lines.map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n\r\n`
  return Buffer.concat([Buffer.from(head, 'latin1'), end])
}

function parsed(text: string): Answered | null {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1] ?? 0)
  if (status === 0) return null
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
  )
  return { status, headers, text: Buffer.from(rest.join('\r\n\r\n'), 'latin1').toString('utf8') }
}
