// Command windows writes the DLL from which Go's runtime gets random numbers, for wine before 8.3, which lacks it. The DLL contains only the name of
// one function, and the name of the function in another DLL that does its work.
//
//	go run ./test/windows ~/.wine/drive_c/windows/system32/bcryptprimitives.dll
package main

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: windows FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], library("bcryptprimitives.dll", "ProcessPrng", "advapi32.SystemFunction036"), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The offsets of the only section in memory and in the file.
const (
	address   = 0x1000
	offset    = 0x200
	alignment = 0x200
)

// library returns a DLL for amd64 that exports one function of another DLL.
func library(name, function, other string) []byte {
	// https://learn.microsoft.com/windows/win32/debug/pe-format#the-edata-section-image-only
	const directory = 40
	texts := []byte(name + "\x00" + function + "\x00" + other + "\x00")
	at := func(i int) uint32 { return uint32(address + directory + 4 + 4 + 4 + i) } // the offset of texts, after the three tables of one entry each
	var exports bytes.Buffer
	write(&exports,
		[4]uint32{3: at(0)}, // flags, time, version, name of the DLL
		[3]uint32{1, 1, 1},  // first number, functions, names
		[3]uint32{address + directory, address + directory + 4, address + directory + 8}, // functions, names, numbers
		at(len(name)+1+len(function)+1),                                                  // an address inside the export section is the name of another function
		at(len(name)+1),
		uint32(0),
		texts,
	)
	size := uint32(exports.Len())

	var out bytes.Buffer
	stub := make([]byte, 64)
	copy(stub, "MZ")
	binary.LittleEndian.PutUint32(stub[60:], uint32(len(stub)))
	header := pe.OptionalHeader64{
		Magic: 0x20b, SizeOfInitializedData: alignment, ImageBase: 0x180000000, SectionAlignment: address, FileAlignment: alignment,
		MajorOperatingSystemVersion: 6, MajorSubsystemVersion: 6, SizeOfImage: 2 * address, SizeOfHeaders: offset, Subsystem: pe.IMAGE_SUBSYSTEM_WINDOWS_CUI,
		DllCharacteristics: pe.IMAGE_DLLCHARACTERISTICS_NX_COMPAT | pe.IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE, NumberOfRvaAndSizes: 16,
	}
	header.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_EXPORT] = pe.DataDirectory{VirtualAddress: address, Size: size}
	write(&out, stub, []byte("PE\x00\x00"),
		pe.FileHeader{
			Machine: pe.IMAGE_FILE_MACHINE_AMD64, NumberOfSections: 1, SizeOfOptionalHeader: uint16(binary.Size(header)),
			Characteristics: pe.IMAGE_FILE_EXECUTABLE_IMAGE | pe.IMAGE_FILE_LARGE_ADDRESS_AWARE | pe.IMAGE_FILE_DLL,
		},
		header,
		pe.SectionHeader32{
			Name: [8]uint8{'.', 'e', 'd', 'a', 't', 'a'}, VirtualSize: size, VirtualAddress: address, SizeOfRawData: alignment, PointerToRawData: offset,
			Characteristics: pe.IMAGE_SCN_CNT_INITIALIZED_DATA | pe.IMAGE_SCN_MEM_READ,
		},
	)
	out.Write(make([]byte, offset-out.Len()))
	out.Write(exports.Bytes())
	out.Write(make([]byte, offset+alignment-out.Len()))
	return out.Bytes()
}

func write(out *bytes.Buffer, parts ...any) {
	for _, part := range parts {
		_ = binary.Write(out, binary.LittleEndian, part) // writing a value of a fixed size to memory can't fail
	}
}
