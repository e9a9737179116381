/**
 * The fake provider ships with `doorward/testing`; here are the ways it can misbehave.
 *
 *   provider.on('token', hostileAnswers['gzip bomb'])
 */
import { gzipSync } from 'node:zlib'
import { answer } from '../../src/testing/fake-provider/answer-honestly'
import type { FakeHandler } from '../../src/testing/fake-provider/fake-provider'
import { signingKeys } from '../../src/testing/fake-provider/tokens'

export * from '../../src/testing/fake-provider/answer-honestly'
export * from '../../src/testing/fake-provider/fake-provider'
export * from '../../src/testing/fake-provider/start-fake-provider'
export * from '../../src/testing/fake-provider/tokens'

/** Usable by every endpoint: where a hostile answer carries it, only the way it came may be the reason for a refusal. */
const tokenBody = JSON.stringify({
  access_token: 'stolen',
  token_type: 'bearer',
  sub: 'subject-1',
  id: 1,
  keys: [{ ...signingKeys().publicKey.export({ format: 'jwk' }), kid: 'fake-1' }],
})
const asJson = { 'content-type': 'application/json' }

/** Ways an endpoint can misbehave; each fits the token, userinfo, user and jwks endpoints. Use a short `timeoutMs` for the first two. */
export const hostileAnswers: Readonly<Record<string, FakeHandler>> = {
  'never answers': () => undefined,
  'drips a byte at a time': (_request, response) => {
    response.writeHead(200, asJson)
    const timer = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(timer))
  },
  null: answer(200, 'null', asJson),
  'an array': answer(200, '[]', asJson),
  'a string': answer(200, '"x"', asJson),
  'a number': answer(200, '7', asJson),
  'HTML with 200': answer(200, '<html><body>access_token=stolen&token_type=bearer</body></html>'),
  'a form with 200': answer(200, 'access_token=stolen&token_type=bearer', { 'content-type': 'application/x-www-form-urlencoded' }),
  'an empty 204': answer(204, ''),
  'a redirect with a usable body': answer(302, tokenBody, { ...asJson, location: '/elsewhere' }),
  '200 with an error': answer(200, { error: 'bad_verification_code', error_description: 'The code is incorrect or expired.' }),
  'a server error': answer(503, { error: 'temporarily_unavailable' }),
  'a truncated body': (_request, response) => {
    response.writeHead(200, { ...asJson, 'content-length': '4096' })
    response.write('{"access_token":"sto')
    setTimeout(() => response.destroy(), 20)
  },
  'a reset connection': (_request, response) => void response.socket?.resetAndDestroy(),
  'a gzip bomb': (request, response) => answer(200, gzipBomb(), { ...asJson, 'content-encoding': 'gzip' })(request, response),
  'a 100 MB stream': (_request, response) => {
    response.writeHead(200, asJson)
    response.write(tokenBody)
    const chunk = Buffer.alloc(64 * 1024, ' ')
    let left = (100 * 1024 * 1024) / chunk.length
    const pump = () => {
      while (left > 0 && !response.destroyed) {
        left -= 1
        if (!response.write(chunk)) return void response.once('drain', pump)
      }
      response.end()
    }
    pump()
  },
  '20,000-deep JSON': answer(200, `${tokenBody.slice(0, -1)},"deep":${'['.repeat(20_000)}${']'.repeat(20_000)}}`, asJson),
  'invalid UTF-8': answer(
    200,
    Buffer.concat([Buffer.from(`${tokenBody.slice(0, -1)},"x":"`), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
    asJson,
  ),
}

/** 32 MB in 32 KB; made once, when first asked for. */
export function gzipBomb(): Buffer {
  bomb ??= gzipSync(Buffer.concat([Buffer.from(tokenBody), Buffer.alloc(32 * 1024 * 1024, ' ')]))
  return bomb
}
let bomb: Buffer | null = null

/** A loopback URL nobody listens on: ECONNREFUSED. */
export const unreachableUrl = 'http://127.0.0.1:1/'
