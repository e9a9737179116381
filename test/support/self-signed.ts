import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { privatePem } from './signing-keys'

/** A certificate of its own making, for a server whose browser asks for none in particular. */
export function selfSigned(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const name = der(0x30, der(0x31, der(0x30, der(0x06, '550403'), der(0x0c, Buffer.from('doorward tests').toString('hex')))))
  const ecdsaWithSha256 = der(0x30, der(0x06, '2a8648ce3d040302'))
  const [from, until] = ['200101000000Z', '490101000000Z'].map((time) => der(0x17, Buffer.from(time).toString('hex')))
  const named = der(
    0x30,
    der(0x02, `40${randomBytes(8).toString('hex')}`),
    ecdsaWithSha256,
    name,
    der(0x30, from ?? '', until ?? ''),
    name,
    publicKey.export({ type: 'spki', format: 'der' }).toString('hex'),
  )
  const signature = sign('sha256', Buffer.from(named, 'hex'), privateKey).toString('hex')
  const certificate = Buffer.from(der(0x30, named, ecdsaWithSha256, der(0x03, `00${signature}`)), 'hex').toString('base64')
  return { key: privatePem(privateKey), cert: `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----\n` }
}

/** A value of ASN.1 in its distinguished encoding, in hexadecimal as its parts are. */
function der(tag: number, ...parts: readonly string[]): string {
  const inside = parts.join('')
  const length = inside.length / 2
  const hex = (number: number) => number.toString(16).padStart(2, '0')
  if (length < 0x80) return hex(tag) + hex(length) + inside
  return length < 0x100 ? `${hex(tag)}81${hex(length)}${inside}` : `${hex(tag)}82${length.toString(16).padStart(4, '0')}${inside}`
}
