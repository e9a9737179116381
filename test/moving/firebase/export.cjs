/**
 * Makes accounts.json as people get it: accounts of Firebase's own auth emulator, through the code of `firebase auth:export --format=json`.
 *
 *     npm install --no-save --ignore-scripts firebase-tools@15.34.2 && node export.cjs
 *
 * The emulator stores passwords in the clear. Salts and hashes are those of Firebase's own scrypt program (test/passwords/legacy-hashes.ts).
 */
const { once } = require('node:events')
const { writeFileSync } = require('node:fs')
const { createServer } = require('node:http')
const { PassThrough } = require('node:stream')
const { text } = require('node:stream/consumers')
const { createApp } = require('firebase-tools/lib/emulator/auth/server')

const project = 'demo-old-app'
const password = 'user1password'
const salt = '42xEC-ixf3L2lw=='
const passwordHash = 'lSrfV15cpx95_sZS2W9c9Kp6i_LVgQNDNC_qzrCnh1SAyZvqmZqAjTdn3aoItz-VHjoZilo78198JAdRuid5lQ=='

async function listen(app) {
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, origin: `http://127.0.0.1:${server.address().port}` }
}

async function main() {
  const emulator = await listen(await createApp(project))
  const ask = async (path, body, isOwner = false) => {
    const headers = { 'content-type': 'application/json', ...(isOwner && { authorization: 'Bearer owner' }) }
    const request = body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers }
    const response = await fetch(`${emulator.origin}/identitytoolkit.googleapis.com/v1/${path}`, request)
    const answer = await response.json()
    if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`)
    return answer
  }
  const signUp = (person) => ask('accounts:signUp?key=k', { returnSecureToken: true, ...person })
  const update = (change) => ask(`projects/${project}/accounts:update`, change, true)
  const byGoogle = (claims, idToken) =>
    ask('accounts:signInWithIdp?key=k', {
      requestUri: 'http://localhost',
      returnSecureToken: true,
      postBody: `providerId=google.com&id_token=${encodeURIComponent(JSON.stringify(claims))}`,
      ...(idToken && { idToken }),
    })

  const ada = await signUp({ email: 'Ada@example.com', password, displayName: 'Ada' })
  await byGoogle({ sub: 'google-1', email: 'ada@gmail.com', email_verified: true, name: 'Ada' }, ada.idToken)
  await update({ localId: ada.localId, emailVerified: true })
  const closed = await signUp({ email: 'closed@example.com', password })
  await update({ localId: closed.localId, disableUser: true })
  await byGoogle({ sub: 'google-2', email: 'g@example.com', email_verified: false })
  const { sessionInfo } = await ask('accounts:sendVerificationCode?key=k', { phoneNumber: '+15555550100', recaptchaToken: 'any' })
  const codes = await (await fetch(`${emulator.origin}/emulator/v1/projects/${project}/verificationCodes`)).json()
  await ask('accounts:signInWithPhoneNumber?key=k', { sessionInfo, code: codes.verificationCodes[0].code })
  await signUp({})
  const { users } = await ask(`projects/${project}/accounts:batchGet`, null, true)

  // Firebase's servers write base64 for URLs; the command makes it usual base64.
  const stored = users.map((user) => (user.passwordHash ? { ...user, salt, passwordHash, version: 0 } : user))
  const servers = await listen((_request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ users: stored.splice(0) }))
  })
  process.env.FIREBASE_TOKEN_URL = servers.origin
  require('firebase-tools/lib/apiv2').setAccessToken('that of the command')
  const { serialExportUsers } = require('firebase-tools/lib/accountExporter')
  const writeStream = new PassThrough()
  writeStream.write('{"users": [\n') // as lib/commands/auth-export.js does around it
  await serialExportUsers(project, { format: 'json', writeStream, batchSize: 1000 })
  writeStream.end(']}')
  writeFileSync('accounts.json', `${JSON.stringify(JSON.parse(await text(writeStream)), null, 2)}\n`)
  process.exit()
}

void main()
