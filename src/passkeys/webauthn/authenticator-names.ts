/**
 * The names of authenticator makers by AAGUID. The names are only shown in a list. No check uses them, because an AAGUID is not signed
 * without attestation. The ids come from the public lists of the FIDO Alliance and of the passkey developers (November 2026).
 */
const names: ReadonlyMap<string, string> = new Map([
  ['08987058-cadc-4b81-b6e1-30de50dcbe96', 'Windows Hello'],
  ['0ea242b4-43c4-4a1b-8b17-dd6d0b6baec6', 'Keeper'],
  ['50726f74-6f6e-5061-7373-50726f746f6e', 'Proton Pass'],
  ['531126d6-e717-415c-9320-3d9aa6981239', 'Dashlane'],
  ['53414d53-554e-4700-0000-000000000000', 'Samsung Pass'],
  ['6028b017-b1d4-4c02-b4b3-afcdafc96bb2', 'Windows Hello'],
  ['771b48fd-d3d4-4f74-9232-fc157ab0507a', 'Edge on Mac'],
  ['9ddd1817-af5a-4672-a2b9-3e3dd95000a9', 'Windows Hello'],
  ['a10c6dd9-465e-4226-8198-c7c44b91c555', 'Kaspersky Password Manager'],
  ['a11a5faa-9f32-4b8c-8c5d-2f7d13e8c942', 'AliasVault'],
  ['adce0002-35bc-c60a-648b-0b25f1f05503', 'Chrome on Mac'],
  ['b35a26b2-8f6e-4697-ab1d-d44db4da28c6', 'Zoho Vault'],
  ['b5397666-4885-aa6b-cebf-e52262a439a2', 'Chromium'],
  ['b78a0a55-6ef8-d246-a042-ba0f6d55050c', 'LastPass'],
  ['b84e4048-15dc-4dd0-8640-f4f60813c8af', 'NordPass'],
  ['bada5566-a7aa-401f-bd96-45619a55120d', '1Password'],
  ['d3452668-01fd-4c12-926c-83a4204853aa', 'Microsoft Password Manager'],
  ['d548826e-79b4-db40-a3d8-11116f7e8349', 'Bitwarden'],
  ['dd4ec289-e01d-41c9-bb89-70fa845d4bf2', 'iCloud Keychain'],
  ['ea9b8d66-4d01-1d21-3ce4-b6b48cb575d4', 'Google Password Manager'],
  ['eaecdef2-1c31-5634-8639-f1cbd9c00a08', 'KeePassDX'],
  ['f3809540-7f14-49c1-a8b3-8f813b225541', 'Enpass'],
  ['fa37f553-f9b6-4adb-ac53-8bbb57ebdf0d', 'Norton Password Manager'],
  ['fbfc3007-154e-4ecc-8c0b-6e020557d7bd', 'Apple Passwords'],
  ['fdb141b2-5d84-443e-8a35-4698c205a502', 'KeePassXC'],
])

/** Returns the name of the maker. Returns null if the AAGUID is not in the list. */
export function authenticatorName(aaguid: string): string | null {
  return names.get(aaguid) ?? null
}
