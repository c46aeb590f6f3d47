module pushrelay

go 1.19
